/*
 * number.h - numbers as text, without libc.
 */
#ifndef DF_CLIENT_NUMBER_H
#define DF_CLIENT_NUMBER_H

#include <stdint.h>

#define DFI_NUMBER_MAX 20 /* digits */

/* Writes the digits, without NUL; returns where they end. At most DFI_NUMBER_MAX bytes. */
static inline char *dfi_number_put(char *to, uint64_t number)
{
    char digits[DFI_NUMBER_MAX];
    int count = 0;

    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

/* Reads digits from *text on and moves it behind them. */
static inline uint64_t dfi_number_get(const char **text)
{
    uint64_t number = 0;

    for (; **text >= '0' && **text <= '9'; (*text)++)
        number = number * 10 + (uint64_t)(**text - '0');
    return number;
}

/* The same with hexadecimal digits, small letters. */
static inline uint64_t dfi_number_get_hex(const char **text)
{
    uint64_t number = 0;

    for (; (**text >= '0' && **text <= '9') || (**text >= 'a' && **text <= 'f'); (*text)++)
        number = number << 4 | (unsigned)(**text <= '9' ? **text - '0' : **text - 'a' + 10);
    return number;
}

#endif
