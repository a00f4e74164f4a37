/*
 * distance.h - how far from each other the processors are.
 *
 * A trip to a mount server is lines of memory that move one after the other, so beside its work it
 * takes twice as long as this (docs/decisions/068, 119). A virtual machine's processors are moved
 * by their host: the same machine has 80 ns in one minute and 500 in the next.
 */
#ifndef BENCH_DISTANCE_H
#define BENCH_DISTANCE_H

/* ns of a line's way from one processor to another and back, the least of some tries; 0: there is
 * one processor, or the other one is too busy. */
double distance_ns(void);

#endif
