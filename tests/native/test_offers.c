/*
 * test_offers.c - clients that nobody is: who takes one is that client, and wherever it is killed,
 * the server sees its end, and takes what it had and nobody else's.
 *
 * A server's control loop without mounts, in a thread; who joins are connections of this process.
 * And placeholders, which are asked for by the same sockets.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "channel/join.h"
#include "channel/trip.h"
#include "process/socket.h"
#include "server/control.h"

#define PATIENCE_MS 20000

struct rig {
    struct df_serve_options options;
    struct df_server *server;
    pthread_t loop;
    int entry; /* leads to the server */
    struct df_link link;
};

static void *run(void *server)
{
    df_control_run(server);
    return NULL;
}

static struct df_server *new_server(const struct df_serve_options *options)
{
    struct df_server *server = calloc(1, sizeof(*server));
    struct df_ledger *ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(ledger != MAP_FAILED);
    server->options = options;
    server->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&server->lock, NULL);
    assert_int_equal(df_segment_create(&server->own, 0, 0), 0);
    assert_int_equal(df_files_init(&server->files, server->own.segment, ledger, false), 0);
    df_cacher_init(&server->cacher, server->own.segment);
    df_framer_init(&server->framer, server->own.segment, &server->cacher);
    atomic_store(&server->live_count, 1);
    return server;
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    rig->options = (struct df_serve_options){.control = pair[1], .listener = -1, .report = -1};
    rig->server = new_server(&rig->options);
    rig->entry = pair[0];
    pthread_create(&rig->loop, NULL, run, rig->server);
    assert_int_equal(
        df_link_init(&rig->link, rig->server->own.segment, rig->server->own.segment->size), 0);
    *state = rig;
    return 0;
}

static void free_server(struct df_server *server)
{
    munmap(server->files.ledger, sizeof(*server->files.ledger));
    df_files_free(&server->files);
    df_framer_free(&server->framer);
    df_cacher_free(&server->cacher);
    df_segment_end(&server->own);
    df_segment_free(&server->own);
    close(server->news);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    close(rig->entry); /* the loop ends by itself, when it has seen that, and nobody is left */
    pthread_join(rig->loop, NULL);
    free_server(rig->server);
    free(rig);
    return 0;
}

/* ---- what the server knows ------------------------------------------------------------------- */

static bool has_client(struct rig *rig, uint32_t wanted)
{
    uint32_t id = 0;

    while ((id = df_files_client_next(&rig->server->files, id)) != 0)
        if (id == wanted)
            return true;
    return false;
}

static bool is_born(struct rig *rig, uint32_t id)
{
    return df_files_client_is_born(&rig->server->files, id);
}

static bool is_gone(struct rig *rig, uint32_t id)
{
    return !has_client(rig, id);
}

static void await(struct rig *rig, bool (*holds)(struct rig *, uint32_t), uint32_t id)
{
    for (int i = 0; !holds(rig, id) && i < PATIENCE_MS; i++)
        poll(NULL, 0, 1);
    assert_true(holds(rig, id));
}

/* ---- one that takes an offer, in steps ------------------------------------------------------- */

struct taker {
    int ours;
    uint32_t client, place, ticket;
};

static struct taker look(struct rig *rig)
{
    _Atomic uint32_t *offers = rig->server->own.segment->offers;
    struct taker t = {.ours = -1};

    for (;; sched_yield())
        for (t.place = 0; t.place < DF_OFFERS; t.place++)
            if ((t.client = atomic_load(&offers[t.place])) != 0 && !(t.client & DF_TICKET)) {
                t.ticket = DF_TICKET | atomic_fetch_add(&rig->server->own.segment->tickets, 1);
                return t;
            }
}

/* With a copy of the descriptor. */
static void send_to(struct rig *rig, struct df_join_message body, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {
        {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {&body, sizeof(body)};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};

    body.magic = DF_JOIN_MAGIC;
    memcpy(body.build, df_build, DF_BUILD_SIZE);
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    assert_int_equal(sendmsg(rig->entry, &header, 0), sizeof(body));
}

static void say_by(struct rig *rig, const struct taker *t, int fd)
{
    send_to(rig,
            (struct df_join_message){.kind = DF_JOIN_TAKE,
                                     .client = t->client,
                                     .size = (uint64_t)t->place << 32 | t->ticket},
            fd);
}

static void say(struct rig *rig, struct taker *t)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    say_by(rig, t, pair[1]);
    close(pair[1]);
    t->ours = pair[0];
}

static bool take(struct rig *rig, const struct taker *t)
{
    uint32_t client = t->client;

    return atomic_compare_exchange_strong(&rig->server->own.segment->offers[t->place], &client,
                                          t->ticket);
}

/* The server has nothing of it any more. */
static bool is_let_go(const struct taker *t)
{
    struct pollfd end = {.fd = t->ours, .events = POLLIN};

    return poll(&end, 1, PATIENCE_MS) == 1 && end.revents & POLLHUP;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void whoever_takes_one_is_that_client_until_its_end(void **state)
{
    struct rig *rig = *state;
    int control, other;
    int64_t client, second;

    (void)look(rig); /* they are there */
    client = df_join_late(&rig->link, rig->entry, &control);
    second = df_join_late(&rig->link, rig->entry, &other);
    assert_true(client > 0 && second > 0 && client != second);
    await(rig, is_born, (uint32_t)client);
    await(rig, is_born, (uint32_t)second);
    close(control);
    await(rig, is_gone, (uint32_t)client);
    assert_true(is_born(rig, (uint32_t)second));
    close(other);
    await(rig, is_gone, (uint32_t)second);
}

static void one_killed_before_it_takes_leaves_the_offer(void **state)
{
    struct rig *rig = *state;
    struct taker killed = look(rig), next = killed;

    say(rig, &killed);
    close(killed.ours);
    next.ticket = DF_TICKET | atomic_fetch_add(&rig->server->own.segment->tickets, 1);
    say(rig, &next);
    assert_true(take(rig, &next));
    await(rig, is_born, next.client);
    close(next.ours);
    await(rig, is_gone, next.client);
}

/* More often than there are clients. */
static void one_killed_after_it_has_taken_is_gone_at_once(void **state)
{
    struct rig *rig = *state;

    for (int i = 0; i < DF_CLIENT_MAX + 100; i++) {
        struct taker killed = look(rig);

        say(rig, &killed);
        assert_true(take(rig, &killed));
        close(killed.ours);
    }
    for (int i = 0; df_files_client_count(&rig->server->files) > 0 && i < PATIENCE_MS; i++)
        poll(NULL, 0, 1);
    assert_int_equal(df_files_client_count(&rig->server->files), 0);
    whoever_takes_one_is_that_client_until_its_end(state);
}

static void of_two_who_want_the_same_one_gets_it(void **state)
{
    struct rig *rig = *state;
    struct taker faster = look(rig), slower = faster;

    slower.ticket = DF_TICKET | atomic_fetch_add(&rig->server->own.segment->tickets, 1);
    say(rig, &slower);
    say(rig, &faster);
    assert_true(take(rig, &faster));
    assert_false(take(rig, &slower));
    assert_true(is_let_go(&slower));
    await(rig, is_born, faster.client);
    close(slower.ours);
    close(faster.ours);
    await(rig, is_gone, faster.client);
}

/* Whoever comes too late, or writes nonsense, ends nothing. */
static void what_is_not_offered_cannot_be_taken(void **state)
{
    struct rig *rig = *state;
    int control;
    int64_t client;
    struct taker thief;

    (void)look(rig);
    client = df_join_late(&rig->link, rig->entry, &control);
    thief = (struct taker){.client = (uint32_t)client, .place = 1, .ticket = DF_TICKET | 99};
    await(rig, is_born, thief.client);
    say(rig, &thief);
    assert_true(is_let_go(&thief));
    close(thief.ours);
    thief.place = DF_OFFERS;
    say(rig, &thief);
    assert_true(is_let_go(&thief));
    close(thief.ours);
    assert_true(is_born(rig, (uint32_t)client));
    close(control);
    await(rig, is_gone, (uint32_t)client);
}

/* ---- where the server can tell or hear nothing: a file in the place of a socket ----------------
 */

/* No epoll instance takes it, as none may when memory is short. */
static int deaf(void)
{
    int fd = memfd_create("deaf", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void who_cannot_be_told_that_it_is_welcome_sees_the_end(void **state)
{
    struct rig *rig = *state;
    struct taker guest;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    send_to(rig, (struct df_join_message){.kind = DF_JOIN_HELLO}, ends[1]);
    close(ends[1]);
    guest.ours = ends[0];
    assert_true(is_let_go(&guest));
    assert_int_equal(df_files_client_count(&rig->server->files), 0);
    close(ends[0]);
}

static bool is_offered_no_more(struct rig *rig, uint32_t client)
{
    for (uint32_t i = 0; i < DF_OFFERS; i++)
        if (atomic_load(&rig->server->own.segment->offers[i]) == client)
            return false;
    return true;
}

static void who_cannot_be_heard_takes_nothing_or_is_gone(void **state)
{
    struct rig *rig = *state;
    struct taker early = look(rig), late;
    int fd = deaf();

    say_by(rig, &early, fd);
    await(rig, is_offered_no_more, early.client);
    assert_false(take(rig, &early));
    await(rig, is_gone, early.client);
    late = look(rig);
    assert_true(take(rig, &late));
    say_by(rig, &late, fd);
    await(rig, is_gone, late.client);
    close(fd);
    whoever_takes_one_is_that_client_until_its_end(state);
}

struct asker {
    struct df_link link;
    int result;
};

static void *ask(void *argument)
{
    struct asker *asker = argument;
    const struct df_caller caller = {0};
    struct df_trip trip = {.link = &asker->link, .caller = &caller};

    asker->result = df_trip_nothing(&trip);
    return NULL;
}

static bool has_asked(struct rig *rig, uint32_t client)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        if (atomic_load(&df_segment_slots(rig->server->own.segment)[i].word) ==
            df_slot_word(client, DF_SLOT_SUBMITTED))
            return true;
    return false;
}

static void who_is_taken_for_dead_while_it_waits_is_refused(void **state)
{
    struct rig *rig = *state;
    struct asker asker = {.link = rig->link};
    pthread_t thread;

    asker.link.client = df_files_client_new(&rig->server->files);
    pthread_create(&thread, NULL, ask, &asker);
    await(rig, has_asked, asker.link.client);
    df_execute_gone(rig->server, asker.link.client);
    pthread_join(thread, NULL);
    assert_int_equal(asker.result, -ENOTCONN);
}

/* ---- a server that is slow to read ------------------------------------------------------------
 */

static void ignore(int signal)
{
    (void)signal;
}

/* Whether the process's first thread does: its state in /proc is S then. */
static bool first_sleeps(void)
{
    char text[256] = "";
    FILE *file = fopen("/proc/self/stat", "r");

    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    return strncmp(strrchr(text, ')'), ") S", 3) == 0;
}

struct late_reader {
    int socket;
    pthread_t waiter; /* the first thread: for room in the socket */
};

/* Reads what has filled the socket, once who waits there has had a few signals. (No handler counts
 * them: ThreadSanitizer calls those when it likes.) */
static void *read_late(void *argument)
{
    struct late_reader *reader = argument;
    char byte;

    for (int i = 0; i < 3; i++) {
        while (!first_sleeps())
            sched_yield();
        pthread_kill(reader->waiter, SIGUSR1);
    }
    while (recv(reader->socket, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
        ;
    return NULL;
}

static void whom_signals_interrupt_joins_all_the_same(void **state)
{
    struct rig *rig = *state;
    struct sigaction action = {.sa_handler = ignore};
    struct late_reader reader = {.waiter = pthread_self()};
    pthread_t thread;
    int pair[2], control;

    (void)look(rig);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    while (send(pair[0], "x", 1, MSG_DONTWAIT) > 0)
        ;
    sigaction(SIGUSR1, &action, NULL);
    reader.socket = pair[1];
    pthread_create(&thread, NULL, read_late, &reader);
    assert_true(df_join_late(&rig->link, pair[0], &control) > 0);
    pthread_join(thread, NULL);
    close(control);
    close(pair[0]);
    close(pair[1]);
}

/* ---- slots of the dead ----------------------------------------------------------------------- */

#define BURIALS 5000

struct waiter {
    struct df_slot *slot;
    _Atomic bool done;
    unsigned lost; /* how often the slot was taken from it */
};

#define ITS_OWN df_slot_word(DF_TICKET >> 4, DF_SLOT_CLAIMED)

/* Claims the slot as soon as whoever has it is buried, and gives it back. */
static void *claim_from_the_dead(void *argument)
{
    struct waiter *waiter = argument;
    _Atomic uint32_t *word = &waiter->slot->word;
    bool kept;

    while (!atomic_load(&waiter->done)) {
        uint32_t seen = DF_SLOT_FREE;

        if (atomic_load(word) == DF_SLOT_FREE)
            continue;
        while (!atomic_compare_exchange_strong(word, &seen, ITS_OWN))
            seen = DF_SLOT_FREE;
        kept = true;
        for (int i = 0; i < 100; i++)
            kept = kept && atomic_load(word) == ITS_OWN;
        waiter->lost += !kept;
        atomic_store(word, DF_SLOT_FREE);
    }
    return NULL;
}

static void who_waits_for_a_slot_of_the_dead_keeps_it(void **state)
{
    struct rig *rig = *state;
    struct waiter waiter = {.slot = df_segment_slots(rig->server->own.segment)};
    pthread_t thread;

    pthread_create(&thread, NULL, claim_from_the_dead, &waiter);
    for (int i = 0; i < BURIALS; i++) {
        uint32_t dead = df_files_client_new(&rig->server->files), seen = DF_SLOT_FREE;

        while (!atomic_compare_exchange_strong(&waiter.slot->word, &seen,
                                               df_slot_word(dead, DF_SLOT_CLAIMED)))
            seen = DF_SLOT_FREE;
        df_execute_gone(rig->server, dead);
    }
    atomic_store(&waiter.done, true);
    pthread_join(thread, NULL);
    assert_int_equal(waiter.lost, 0);
}

/* ---- placeholders ---------------------------------------------------------------------------- */

struct giver {
    int socket;
    _Atomic bool holds;
};

/* As the server, but it takes its time after it has answered. */
static void *give_slowly(void *argument)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    struct giver *giver = argument;
    struct df_join_message body;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {&body, sizeof(body)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int place = memfd_create("place", MFD_CLOEXEC), answer;

    recvmsg(giver->socket, &message, 0);
    answer = *(int *)CMSG_DATA(&control.header);
    body.kind = DF_JOIN_WELCOME;
    df_socket_tell(answer, &body, sizeof(body), place, 0);
    nanosleep(&pause, NULL);
    close(place);
    atomic_store(&giver->holds, false);
    close(answer);
    return NULL;
}

/* Else its locks would last longer than the descriptors of who has asked. */
static void a_placeholder_is_only_the_askers_own(void **state)
{
    struct rig *rig = *state;
    struct giver giver = {.holds = true};
    pthread_t thread;
    int pair[2], fd;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    giver.socket = pair[1];
    rig->link.control = pair[0];
    pthread_create(&thread, NULL, give_slowly, &giver);
    fd = df_join_place(&rig->link, 1);
    assert_true(fd >= 0);
    assert_false(atomic_load(&giver.holds));
    pthread_join(thread, NULL);
    close(fd);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whoever_takes_one_is_that_client_until_its_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_killed_before_it_takes_leaves_the_offer, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_killed_after_it_has_taken_is_gone_at_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(of_two_who_want_the_same_one_gets_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_offered_cannot_be_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_cannot_be_told_that_it_is_welcome_sees_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_cannot_be_heard_takes_nothing_or_is_gone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_is_taken_for_dead_while_it_waits_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(whom_signals_interrupt_joins_all_the_same, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_waits_for_a_slot_of_the_dead_keeps_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_placeholder_is_only_the_askers_own, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
