/*
 * rewrite.c - placeholder of step one: nothing is rewritten.
 */
#include "intercept/rewrite.h"

#include "intercept/lock.h"

struct dfi_lock dfi_rewrite_lock;
bool dfi_rewrite_on;

void dfi_rewrite_hit(uintptr_t site, unsigned long *nr)
{
    (void)site;
    (void)nr;
}
