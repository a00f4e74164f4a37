/*
 * ascii.c - a str that a file is read into, as bytes objects are: for text that is ASCII.
 *
 * Decoding is what reading a text file costs most: the interpreter takes eight bytes a step, and
 * the bytes are copied twice. Most text is ASCII, whose str holds the bytes as they are.
 *
 * The limited API makes no str to be filled, but it makes one longer, and it shows where the bytes
 * of one lie. Whether they lie in the object itself is tried once, with each interpreter.
 */
#include "python/ascii.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char vector __attribute__((vector_size(16), aligned(1), may_alias));

static bool can_be_filled;

/* ---- looking ---- */

static unsigned traits_of(vector high, vector returns)
{
    uint64_t words[4];
    memcpy(words, &high, sizeof(high));
    memcpy(words + 2, &returns, sizeof(returns));
    return ((words[0] | words[1]) & UINT64_C(0x8080808080808080) ? DF_ASCII_NOT : 0) |
           (words[2] | words[3] ? DF_ASCII_RETURN : 0);
}

unsigned df_ascii_look(const char *data, size_t size)
{
    vector high = {0}, returns = {0}, last = {0};
    const vector *v = (const vector *)data;
    for (; size >= 4 * sizeof(vector); size -= 4 * sizeof(vector), v += 4) {
        high |= v[0] | v[1] | v[2] | v[3];
        returns |=
            (vector)((v[0] == '\r') | (v[1] == '\r')) | (vector)((v[2] == '\r') | (v[3] == '\r'));
    }
    for (; size > 0; size -= size < sizeof(last) ? size : sizeof(last), v++) {
        last = (vector){0};
        memcpy(&last, v, size < sizeof(last) ? size : sizeof(last));
        high |= last;
        returns |= (vector)(last == '\r');
    }
    return traits_of(high, returns);
}

/* ---- making one ---- */

/* The interpreter gives out one character's str again and again, so that is none to be filled. */
enum { SHORTEST = 2 };

static PyObject *make(Py_ssize_t size, char **data)
{
    PyObject *text = PyUnicode_FromStringAndSize("??", SHORTEST);
    if (!text || PyUnicode_Resize(&text, size) < 0) {
        Py_XDECREF(text);
        return NULL;
    }
    *data = (char *)PyUnicode_AsUTF8AndSize(text, NULL);
    return text;
}

PyObject *df_ascii_new(Py_ssize_t size, char **data)
{
    return can_be_filled && size >= SHORTEST ? make(size, data) : NULL;
}

/* ---- trying ---- */

int df_ascii_prepare(void)
{
    static const char words[] = "as it was written, and as it is read";
    const Py_ssize_t size = sizeof(words) - 1;
    char *data = NULL;
    PyObject *text = make(size, &data);
    if (!text || !data) {
        Py_XDECREF(text);
        return -1;
    }
    const char *begin = (const char *)text;
    can_be_filled = data > begin && data < begin + 128 && Py_REFCNT(text) == 1;
    if (can_be_filled) {
        memcpy(data, words, sizeof(words));
        can_be_filled = PyUnicode_CompareWithASCIIString(text, words) == 0;
    }
    Py_DECREF(text);
    return 0;
}
