/*
 * constructed.c - a program whose constructor does what its main might: it ends itself if the
 * environment says so, changes directory, umask, environment and signals, and prints. Its main says
 * what it found, and mounts nothing.
 */
#define FUSE_USE_VERSION 31
#include <fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *first_argument = "none";

__attribute__((constructor)) static void construct(int argc, char **argv)
{
    if (getenv("CONSTRUCTOR_EXITS"))
        exit(5);
    umask(0);
    if (argc > 1)
        first_argument = argv[1];
    if (chdir("/usr") == 0 && setenv("CONSTRUCTED", "1", 1) == 0)
        printf("constructed\n");
    signal(SIGUSR1, SIG_IGN);
}

__attribute__((destructor)) static void destruct(void)
{
    printf("destructed\n");
}

int main(void)
{
    char directory[100];
    mode_t mask = umask(0);
    printf("main found %s %o %s %s\n", getcwd(directory, sizeof(directory)), mask,
           getenv("CONSTRUCTED"), first_argument);
    return fuse_version() > 0 ? 7 : 8;
}
