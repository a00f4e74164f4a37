/*
 * ascii.h - text that is ASCII, without a decoder.
 */
#ifndef DF_PYTHON_ASCII_H
#define DF_PYTHON_ASCII_H

#include <Python.h>

enum {                           /* what bytes are not, as the lines of a text file in ASCII */
       DF_ASCII_NOT = 1 << 0,    /* some are above 0x7f */
       DF_ASCII_RETURN = 1 << 1, /* there is a \r, so lines may end in it */
};

/* DF_ASCII_*; 0: the str has these very bytes. */
unsigned df_ascii_look(const char *data, size_t size);

/*
 * A new str of so many characters and where their bytes are to be written, before anybody else
 * sees it; it is one only if they are ASCII. NULL, without an exception unless there is no memory:
 * it cannot be had this way.
 */
PyObject *df_ascii_new(Py_ssize_t size, char **data);

#endif
