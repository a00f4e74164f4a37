/* Something to stop in, for a debugger: with an argument it waits where a debugger finds it. */
#include <stdio.h>
#include <unistd.h>

static int counter;

static __attribute__((noinline)) int count_up(int number)
{
    counter += number;
    return counter;
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 1; i <= 4; i++)
        count_up(i);
    printf("counter %d\n", counter);
    fflush(stdout);
    while (argc > 1)
        pause();
    return 0;
}
