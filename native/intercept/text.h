/*
 * text.h - numbers and names in text, where there is no stdio.
 */
#ifndef DF_INTERCEPT_TEXT_H
#define DF_INTERCEPT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A bounded text under construction; full is set when something did not fit. */
struct dfi_text {
    char *start;
    size_t size, used;
    bool full;
};

#define DFI_TEXT(array) ((struct dfi_text){.start = (array), .size = sizeof(array)})

void dfi_text_add(struct dfi_text *text, const char *part);
void dfi_text_add_size(struct dfi_text *text, const char *part, size_t size);
void dfi_text_add_number(struct dfi_text *text, unsigned long number);
void dfi_text_add_hex(struct dfi_text *text, unsigned long number);
void dfi_text_add_octal(struct dfi_text *text, unsigned long number);

/* As dfi_text_add_hex() with at least that many digits: %0*lx. */
void dfi_text_add_digits(struct dfi_text *text, unsigned long number, int digits);

/* The number at *at, which is moved behind it and one more character. */
unsigned long dfi_text_number(const char **at);

bool dfi_text_equal(const char *left, const char *right);
bool dfi_text_begins(const char *text, const char *start);

/* Behind the last slash. */
const char *dfi_text_base(const char *path);

#endif
