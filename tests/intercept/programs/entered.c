/*
 * entered.c ROUNDS rename|rmdir - enters a directory that a child renames or removes at that
 * moment. Whoever is in it then has gone with it. How often that was not so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *how;
static char top[2048], name[4096], moved[4096];

static void spin(void)
{
    for (volatile int i = rand() % 100000; i > 0; i--)
        ;
}

static void disturb(int seed)
{
    srand((unsigned)seed);
    spin();
    _exit((strcmp(how, "rename") == 0 ? rename(name, moved) : rmdir(name)) != 0);
}

/* It is where it was renamed to, or is removed, also when another has its name. */
static int is_right(void)
{
    char now[4096];

    if (mkdir(name, 0777) < 0)
        _exit(3);
    if (strcmp(how, "rmdir") == 0)
        return !getcwd(now, sizeof(now)) && errno == ENOENT && creat("file", 0666) < 0;
    return getcwd(now, sizeof(now)) && strcmp(now, moved) == 0 && close(creat("file", 0666)) == 0 &&
           unlink("file") == 0;
}

static int one_round(int i)
{
    int right = 1, status;
    pid_t child;

    snprintf(name, sizeof(name), "%s/dir%d", top, i);
    snprintf(moved, sizeof(moved), "%s/moved%d", top, i);
    if (mkdir(name, 0777) < 0)
        _exit(3);
    if ((child = fork()) == 0)
        disturb(i);
    spin();
    status = chdir(name);
    if (status < 0 && errno != ENOENT)
        _exit(3);
    waitpid(child, NULL, 0);
    if (status == 0)
        right = is_right();
    if (chdir(top) < 0)
        _exit(3);
    rmdir(name);
    rmdir(moved);
    return !right;
}

int main(int argc, char **argv)
{
    int wrong = 0;

    if (argc != 3 || !getcwd(top, sizeof(top)))
        return 2;
    how = argv[2];
    for (int i = 0; i < atoi(argv[1]); i++)
        wrong += one_round(i);
    return printf("wrong %d\n", wrong) < 0;
}
