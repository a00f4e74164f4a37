/* options.c - a program that parses its options with getopt_long(3) and says what it has found. */
#define FUSE_USE_VERSION 31
#include <fuse.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char *argv[])
{
    static const struct option longs[] = {
        {"plain", no_argument, NULL, 'p'},
        {"value", required_argument, NULL, 'v'},
        {"almost-a", no_argument, NULL, '1'},
        {"almost-b", no_argument, NULL, '2'},
        {NULL, 0, NULL, 0},
    };
    int found;
    if (getenv("SILENT"))
        opterr = 0;
    while ((found = getopt_long(argc, argv, "pv:", longs, NULL)) != -1)
        if (found == '?')
            exit(3);
    return fuse_version() > 0 ? 4 : 5;
}
