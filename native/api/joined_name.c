/*
 * joined_name.c - finds a mount server by its name and joins it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/joined_private.h"

static bool is_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 64;
}

/* One that is there is left as it is. */
static int make_directory(const char *path)
{
    if (mkdir(path, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    return chmod(path, 0700) < 0 ? -errno : 0; /* whatever the umask */
}

/* A directory that nobody else may write to, or look into. */
static int check_directory(const char *path, bool make)
{
    struct stat st;
    int error = make ? make_directory(path) : 0;

    if (error < 0)
        return error;
    if (lstat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? 0 : -EACCES;
}

int df_joined_socket_path(const char *name, bool make, char path[DF_SOCKET_PATH_SIZE])
{
    const char *base = secure_getenv("XDG_RUNTIME_DIR");
    int len, error;

    if (!is_name(name))
        return -EINVAL;
    if (base && base[0] == '/')
        len = snprintf(path, DF_SOCKET_PATH_SIZE, "%s/directfuse", base);
    else
        len = snprintf(path, DF_SOCKET_PATH_SIZE, "/tmp/directfuse-%u", (unsigned)geteuid());
    if (len + sizeof("/.socket") + strlen(name) > DF_SOCKET_PATH_SIZE)
        return -ENAMETOOLONG;
    error = check_directory(path, make);
    snprintf(path + len, DF_SOCKET_PATH_SIZE - (size_t)len, "/%s.socket", name);
    return error;
}

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    static_assert(sizeof(address.sun_path) == DF_SOCKET_PATH_SIZE, "unix(7)");
    int fd, error = df_joined_socket_path(name, false, address.sun_path);

    if (error < 0)
        return error;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error = errno == ECONNREFUSED ? -ENOENT : -errno; /* its server is gone */
    close(fd);
    return error;
}

/* Where there is no way to it. */
static void say_why(int error, const char *name, char *message, size_t size)
{
    char path[DF_SOCKET_PATH_SIZE];

    if (!message)
        return;
    if (error == -EINVAL)
        snprintf(message, size, "'%s' is no name: 1 to 63 bytes, no slash, no leading dot", name);
    else if (error == -ENAMETOOLONG)
        snprintf(message, size, "%s: too long for a socket in $XDG_RUNTIME_DIR", name);
    else if (error == -EACCES && df_joined_socket_path(name, false, path) == -EACCES)
        snprintf(message, size,
                 "%.*s must be a directory that only you can enter (mode 0700); let "
                 "XDG_RUNTIME_DIR name another place if it is another user's",
                 (int)(strrchr(path, '/') - path), path);
    else if (error == -ENOENT)
        snprintf(message, size, "no mount server has the name %s: directfuse serve '...' --name %s",
                 name, name);
    else
        snprintf(message, size, "the mount server %s cannot be reached: %s", name,
                 strerror(-error));
}

/* A socket to the server of that name, or -errno and why. */
static int reach(const char *name, char *message, size_t size)
{
    int socket = connect_to(name);

    if (socket < 0)
        say_why(socket, name, message, size);
    return socket;
}

int df_joined_find(const char *name, const char *point, unsigned seconds, struct df_joined **out,
                   int *mount_id, char *message, size_t size)
{
    struct df_joined_order order = {.seconds = seconds, .point = point};
    int error;

    order.socket = reach(name, message, size);
    if (order.socket < 0)
        return order.socket;
    error = df_joined_join(&order, out, mount_id, message, size);
    close(order.socket);
    return error;
}

int df_joined_points(const char *name, char *points, size_t room, char *message, size_t size)
{
    struct df_joined_order order = {.seconds = 0};
    struct df_link link = {.segment = NULL};
    int result;

    order.socket = reach(name, message, size);
    if (order.socket < 0)
        return order.socket;
    result = df_joined_enter(&link, &order, message, size);
    close(order.socket);
    if (result < 0)
        return result;
    result = df_joined_list(link.segment, '\0', points, room);
    df_joined_part(&link);
    return result;
}
