/*
 * bufvec.h - libfuse's struct fuse_bufvec on the host's side: taking the bytes out of what a
 * plugin's read_buf has answered, and showing a caller's memory to write_buf.
 */
#ifndef DF_HOST_BUFVEC_H
#define DF_HOST_BUFVEC_H

#include <sys/types.h>
#include <sys/uio.h>

#include "host/libfuse.h"

#define DF_BUFVEC_MAX 64 /* buffers shown to a plugin at a time */

/* A bufvec of up to DF_BUFVEC_MAX buffers, on the stack. */
union df_bufvec {
    struct fuse_bufvec vec;
    char room[sizeof(struct fuse_bufvec) + (DF_BUFVEC_MAX - 1) * sizeof(struct fuse_buf)];
};

/* Lists the memory of iov[0..count), count <= DF_BUFVEC_MAX. */
void df_bufvec_show(union df_bufvec *to, const struct iovec *iov, int count);

/*
 * Moves what the bufvec holds, memory or descriptors, to the memory of iov[0..count), which is used
 * up on the way. A descriptor's bytes are read straight to where they belong. Returns the count of
 * bytes moved, fewer than asked at the end of a file, or a negative errno when there were none.
 */
ssize_t df_bufvec_take(struct fuse_bufvec *from, struct iovec *iov, int count);

/* Frees what read_buf has allocated: the memory of its buffers, and itself. NULL is allowed. */
void df_bufvec_free(struct fuse_bufvec *vec);

#endif
