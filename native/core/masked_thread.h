/*
 * masked_thread.h - threads of ours in somebody else's process.
 */
#ifndef DF_CORE_MASKED_THREAD_H
#define DF_CORE_MASKED_THREAD_H

#include <pthread.h>

/*
 * pthread_create(3), of a thread that takes no asynchronous signal: these are for the threads of
 * the process, as they were before. Faults stay deliverable, or the kernel would end the process
 * past the handler that it may have for them. 0 or an errno of pthread_create().
 */
int df_masked_thread_create(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*run)(void *), void *argument);

#endif
