/*
 * call.c - a C program that mounts a FUSE file system in itself and reads a file of it.
 *
 *     export PKG_CONFIG_PATH=$(python3 -m directfuse paths pkgconfig)
 *     gcc call.c -o call $(pkg-config --cflags --libs directfuse)
 *     ./call /hello/greeting ./hello.so /hello          # the plugin of examples/hello.c
 */
#include <directfuse.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int show(const char *path)
{
    int fd = df_open(path, O_RDONLY, 0);
    if (fd < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    char buf[4096];
    ssize_t got;
    while ((got = df_read(fd, buf, sizeof(buf))) > 0) {
        fwrite(buf, 1, (size_t)got, stdout);
    }
    df_close(fd);
    return got < 0 ? -1 : 0;
}

int main(int argc, char *argv[])
{
    if (argc < 3) {
        fprintf(stderr, "usage: call FILE PLUGIN ARGUMENT...\n");
        return 2;
    }
    char why[512];
    int mount = df_mount(NULL, argc - 2, argv + 2, 0, why, sizeof(why));
    if (mount < 0) {
        fprintf(stderr, "%s: %s: %s\n", argv[2], strerror(errno), why);
        return 1;
    }
    int result = show(argv[1]);
    return df_unmount(mount, 0) != 0 || result != 0;
}
