/*
 * directory.h - the helper's own directory in TMPDIR, and who removes it and ends its program where
 * the helper cannot.
 */
#ifndef HELPER_DIRECTORY_H
#define HELPER_DIRECTORY_H

/* What may be in it. go-fuse opens and polls the file below a new mountpoint, so that Go's runtime
 * learns that files there cannot be polled; a plain one serves. */
#define DIRECTORY_CONTROL   "control"
#define DIRECTORY_TOOLS     "tools" /* a link, where it is needed (surroundings.c) */
#define DIRECTORY_MNT       "mnt"
#define DIRECTORY_POLL_FILE DIRECTORY_MNT "/.go-fuse-epoll-hack"

/* Removes it and what is in it. */
void directory_remove(const char *directory);

/* Starts the janitor, a process of its own below `tools`, which removes the directory when this
 * process has ended without doing so. Returns what directory_dismiss() takes; -1: there is none,
 * and a host that is killed leaves its directory. */
int directory_watch(const char *tools, const char *directory);

/* The janitor is to end that process, too (a pidfd, which stays the caller's), as farewell.h says.
 */
void directory_entrust(int janitor, int pidfd);

/* The directory is gone: so is the janitor. */
void directory_dismiss(int janitor);

#endif
