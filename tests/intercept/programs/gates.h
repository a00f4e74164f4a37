/*
 * gates.h - files that become ready, for tests of poll(2), select(2) and epoll: what gates.c and
 * gates_low.c have in common.
 *
 *   /a, /b, /c   gates. Ready for reading while there are bytes, for writing if it is not full.
 *                Nothing to read is EAGAIN.
 *   /broken      the operation poll gives EIO
 *   /asked       how often the operation was asked to tell later, as text
 *   /silent      asked, it says ENOSYS
 *
 * What is written to a gate is done to it: "+N" gives it N bytes, "full" and "free", "hup", "poke"
 * (tells, though nothing has changed), "die" ends the file system.
 */
#include <errno.h>
#include <fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GATES   3
#define WAITING 64 /* handles that a gate keeps */

static const char *const names[] = {"a", "b", "c", "broken", "asked", "silent"};
#define FILES (int)(sizeof(names) / sizeof(names[0]))
enum { BROKEN = GATES, ASKED, SILENT };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct gate {
    int bytes, full, hup;
    int count;
    struct fuse_pollhandle *waiting[WAITING]; /* of any open of it */
} gates[GATES];
static int asked;

/* Its index; FILES: there is none. */
static int find(const char *name)
{
    int i = 0;
    while (i < FILES && strcmp(name, names[i]) != 0)
        i++;
    return i;
}

/* file < 0: the root. */
static struct stat attributes_of(int file)
{
    struct stat st = {.st_nlink = 1, .st_ino = (ino_t)(file + 2)};
    st.st_mode = file < 0 ? S_IFDIR | 0777 : S_IFREG | 0666;
    return st;
}

static int take(int file, char *to, size_t size)
{
    int got;
    pthread_mutex_lock(&lock);
    if (file < GATES) {
        got = gates[file].bytes < (int)size ? gates[file].bytes : (int)size;
        memset(to, 'x', (size_t)got);
        gates[file].bytes -= got;
        got = got ? got : -EAGAIN;
    } else {
        got = snprintf(to, size, "%d", asked);
    }
    pthread_mutex_unlock(&lock);
    return got;
}

/* Who waited before, for the caller to tell. */
static struct gate change(struct gate *gate, const char *text)
{
    struct gate before;
    pthread_mutex_lock(&lock);
    gate->bytes += text[0] == '+' ? atoi(text) : 0;
    gate->full = strcmp(text, "full") == 0 || (gate->full && strcmp(text, "free") != 0);
    gate->hup = strcmp(text, "hup") == 0 || (gate->hup && strcmp(text, "free") != 0);
    before = *gate;
    gate->count = 0;
    pthread_mutex_unlock(&lock);
    return before;
}

static void tell(struct fuse_pollhandle *handle)
{
    TELL(handle);
    fuse_pollhandle_destroy(handle);
}

static int order(int file, const char *from, size_t size)
{
    struct gate before;
    char text[16] = "";
    if (file >= GATES || size >= sizeof(text))
        return -EINVAL;
    memcpy(text, from, size);
    if (strcmp(text, "die") == 0)
        kill(getpid(), SIGKILL);
    before = change(&gates[file], text);
    for (int i = 0; i < before.count; i++)
        tell(before.waiting[i]);
    return (int)size;
}

/* Takes over the handle, which may be NULL. */
static int ready(int file, struct fuse_pollhandle *handle, unsigned *events)
{
    struct fuse_pollhandle *old = handle;
    pthread_mutex_lock(&lock);
    asked += handle != NULL;
    if (file < GATES) {
        struct gate *gate = &gates[file];
        *events = (gate->bytes > 0 ? POLLIN | POLLRDNORM : 0) | (gate->hup ? POLLHUP : 0) |
                  (gate->full ? 0 : POLLOUT | POLLWRNORM);
        if (handle && gate->count == WAITING) /* who is told too early asks again */
            old = gate->waiting[--gate->count];
        else
            old = NULL;
        if (handle)
            gate->waiting[gate->count++] = handle;
    }
    pthread_mutex_unlock(&lock);
    if (old && file < GATES)
        tell(old);
    else if (old)
        fuse_pollhandle_destroy(old);
    return file < GATES ? 0 : file == SILENT ? -ENOSYS : -EIO;
}
