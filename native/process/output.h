/*
 * output.h - the standard output and error that a server has from who started it.
 */
#ifndef DF_PROCESS_OUTPUT_H
#define DF_PROCESS_OUTPUT_H

/* Leads them to /dev/null, at the SIGHUP by which `directfuse run` says that its command has ended
 * and other programs run on: who waits for the end of a pipe's output would wait for their end. */
void df_output_let_go(void);

#endif
