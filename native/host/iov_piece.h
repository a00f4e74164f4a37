/*
 * iov_piece.h - a caller's iovecs in pieces: as much as one operation of a plugin may carry.
 */
#ifndef DF_HOST_IOV_PIECE_H
#define DF_HOST_IOV_PIECE_H

#include <stddef.h>
#include <sys/uio.h>

#include "host/bufvec.h"

/* What remains of a caller's iovecs: from byte `skip` of the first on. */
struct df_iov_rest {
    const struct iovec *iov;
    int count;
    size_t skip;
};

/* One piece: at most DF_BUFVEC_MAX buffers. */
struct df_iov_piece {
    struct iovec iov[DF_BUFVEC_MAX];
    int count;
    size_t size; /* bytes; 0: nothing remains */
};

static inline void df_iov_skip_empty(struct df_iov_rest *rest)
{
    while (rest->count && rest->skip >= rest->iov->iov_len) {
        rest->skip -= rest->iov->iov_len;
        rest->iov++;
        rest->count--;
    }
}

/* Cuts the next piece, of at most `limit` bytes, off the rest. */
static inline void df_iov_cut(struct df_iov_piece *piece, struct df_iov_rest *rest, size_t limit)
{
    piece->count = 0;
    piece->size = 0;
    df_iov_skip_empty(rest);
    while (rest->count && piece->count < DF_BUFVEC_MAX && piece->size < limit) {
        size_t len = rest->iov->iov_len - rest->skip;
        if (len > limit - piece->size)
            len = limit - piece->size;
        piece->iov[piece->count++] = (struct iovec){
            .iov_base = (char *)rest->iov->iov_base + rest->skip,
            .iov_len = len,
        };
        piece->size += len;
        rest->skip += len;
        df_iov_skip_empty(rest);
    }
}

#endif
