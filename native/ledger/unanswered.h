/*
 * unanswered.h - the calls that a server was at when it died.
 *
 * A client goes by the answers that it has had: what a call without one has entered in the ledger,
 * nobody knows of, and it is asked for once more. So first the ledger is made to agree with what
 * the clients know: what such a call brought in is taken back, what it let go of is gone. Each is
 * one store, and whoever dies in between leaves all that is needed to do it again.
 */
#ifndef DF_LEDGER_UNANSWERED_H
#define DF_LEDGER_UNANSWERED_H

#include "ledger/files.h"

/* Before df_files_take(). */
void df_unanswered_settle(struct df_files *files);

/* After that, and before workers begin (df_segment_resume()): calls that only let go of something
 * are done, those that two servers have crashed at end in EIO, all others are submitted again. What
 * is left of a client that was being buried is freed. */
void df_unanswered_submit(const struct df_files *files);

#endif
