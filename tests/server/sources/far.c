/* far.c - where a segment says how far its clients are. */
#include <stddef.h>
#include <stdio.h>

#include "channel/layout.h"

int main(void)
{
    printf("%zu\n", offsetof(struct df_segment, far));
}
