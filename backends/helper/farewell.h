/*
 * farewell.h - the end of a helper's program; of the helper and its janitor.
 */
#ifndef HELPER_FAREWELL_H
#define HELPER_FAREWELL_H

/* Waits for the end of a process (a pidfd), asking ever more firmly: ten seconds, for a server that
 * was told by its channel needs the time to write its data, SIGTERM, five seconds, SIGKILL. */
void farewell(int pidfd);

#endif
