/*
 * again.c - executes itself three times, by its name, and says so; then what /proc/self/exe shows.
 */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
    char *again[6] = {argv[0], "x", "x", "x"}, name[4096];
    ssize_t size;

    printf("%d\n", argc);
    fflush(stdout);
    if (argc < 4) {
        again[argc + 1] = NULL;
        execv(argv[0], again);
        perror("execv");
        return 1;
    }
    size = readlink("/proc/self/exe", name, sizeof(name));
    printf("%.*s\n", size < 0 ? 0 : (int)size, name);
    return 0;
}
