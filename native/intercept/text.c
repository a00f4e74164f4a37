/*
 * text.c - numbers and names in text, where there is no stdio.
 */
#include "intercept/text.h"

#include "intercept/mem.h"

void dfi_text_add_size(struct dfi_text *text, const char *part, size_t size)
{
    if (size >= text->size - text->used) {
        text->full = true;
        size = text->size - text->used - 1;
    }
    memcpy(text->start + text->used, part, size);
    text->used += size;
    text->start[text->used] = '\0';
}

void dfi_text_add(struct dfi_text *text, const char *part)
{
    dfi_text_add_size(text, part, strlen(part));
}

static void add_number(struct dfi_text *text, unsigned long number, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    dfi_text_add_size(text, digits + at, sizeof digits - at);
}

void dfi_text_add_number(struct dfi_text *text, unsigned long number)
{
    add_number(text, number, 10);
}

void dfi_text_add_hex(struct dfi_text *text, unsigned long number)
{
    add_number(text, number, 16);
}

void dfi_text_add_octal(struct dfi_text *text, unsigned long number)
{
    add_number(text, number, 8);
}

void dfi_text_add_digits(struct dfi_text *text, unsigned long number, int digits)
{
    for (; digits > 1 && number >> (4 * (digits - 1)) == 0; digits--)
        dfi_text_add(text, "0");
    dfi_text_add_hex(text, number);
}

unsigned long dfi_text_number(const char **at)
{
    unsigned long number = 0;
    while (**at >= '0' && **at <= '9')
        number = number * 10 + (unsigned long)(*(*at)++ - '0');
    if (**at != '\0')
        (*at)++;
    return number;
}

bool dfi_text_equal(const char *left, const char *right)
{
    while (*left != '\0' && *left == *right) {
        left++;
        right++;
    }
    return *left == *right;
}

bool dfi_text_begins(const char *text, const char *start)
{
    while (*start != '\0') {
        if (*text++ != *start++)
            return false;
    }
    return true;
}

const char *dfi_text_base(const char *path)
{
    const char *base = path;
    for (const char *at = path; *at != '\0'; at++) {
        if (*at == '/')
            base = at + 1;
    }
    return base;
}
