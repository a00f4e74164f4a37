/*
 * test_plugin.c - loader/plugin.c with the libfuse ABI library and both hosts under it: programs
 * are loaded, run, mounted, called, ended and refused. The programs are in plugins/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/file.h"
#include "core/gate.h"
#include "core/mount.h"
#include "loader/plugin.h"
#include "plugin_fixture.h"

/* ---- helpers ------------------------------------------------------------------------------ */

static void write_file(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

static unsigned char *read_whole(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    unsigned char *data = malloc((size_t)st.st_size);
    assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
    close(fd);
    *size = (size_t)st.st_size;
    return data;
}

/* ---- programs that mount ------------------------------------------------------------------- */

static void test_high_level_program_answers(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    struct stat st;
    assert_started(&plugin, "hello_high", "-otext=hello path lane", "/t-plugin/high");
    assert_int_equal(df_call_fstatat(AT_FDCWD, "/t-plugin/high/text", &st, 0), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_size, strlen("hello path lane"));
    assert_content("/t-plugin/high/text", "hello path lane");
    assert_int_equal(df_call_fstatat(AT_FDCWD, "/t-plugin/high/none", &st, 0), -ENOENT);
    stop_plugin(plugin, 0);
    assert_int_equal(df_call_fstatat(AT_FDCWD, "/t-plugin/high/text", &st, 0), DF_NOT_OURS);
}

static void test_low_level_program_answers(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    struct stat st;
    assert_started(&plugin, "hello_low", "-otext=hello node lane", "/t-plugin/low");
    assert_int_equal(df_call_fstatat(AT_FDCWD, "/t-plugin/low/text", &st, 0), 0);
    assert_int_equal(st.st_size, strlen("hello node lane"));
    assert_content("/t-plugin/low/text", "hello node lane");
    assert_int_equal(df_call_fstatat(AT_FDCWD, "/t-plugin/low/none", &st, 0), -ENOENT);
    stop_plugin(plugin, 0);
}

static void test_replies_from_another_thread(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_low", "-otext=late,later", "/t-plugin/late");
    for (int i = 0; i < 50; i++)
        assert_content("/t-plugin/late/text", "late");
    stop_plugin(plugin, 0);
}

static void test_single_threaded_and_own_loops(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_low", "-s", "-otext=serial", "/t-plugin/s");
    assert_content("/t-plugin/s/text", "serial");
    stop_plugin(plugin, 0);
    assert_started(&plugin, "hello_low", "-otext=own,own_loop", "/t-plugin/own");
    assert_content("/t-plugin/own/text", "own");
    stop_plugin(plugin, 0);
    assert_started(&plugin, "hello_high", "-s", "-otext=serial", "/t-plugin/hs");
    assert_content("/t-plugin/hs/text", "serial");
    stop_plugin(plugin, 0);
}

static void test_two_mounts_share_no_globals(void **state)
{
    (void)state;
    struct df_plugin *one, *two;
    assert_started(&one, "hello_high", "-otext=one", "/t-plugin/one");
    assert_started(&two, "hello_high", "-otext=two", "/t-plugin/two");
    assert_content("/t-plugin/one/text", "one");
    assert_content("/t-plugin/two/text", "two");
    assert_content("/t-plugin/one/mounts", "1");
    assert_content("/t-plugin/two/mounts", "1");
    assert_ptr_not_equal(df_plugin_mount_of(one), df_plugin_mount_of(two));
    stop_plugin(one, 0);
    assert_content("/t-plugin/two/text", "two");
    stop_plugin(two, 0);
}

/* True if a directory has an entry of that name. */
static bool has_entry(const char *directory, const char *name)
{
    char buf[1024];
    bool found = false;
    int fd = df_call_openat(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    assert_true(fd >= 0);
    ssize_t size = df_call_getdents(fd, buf, sizeof(buf));
    for (ssize_t at = 0; at < size;) {
        const struct dirent64 *entry = (struct dirent64 *)(buf + at);
        found = found || strcmp(entry->d_name, name) == 0;
        at += entry->d_reclen;
    }
    assert_int_equal(df_call_close(fd), 0);
    return found;
}

static void test_module_subdir(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    char target[64] = "";
    assert_started(&plugin, "hello_high", "-omodules=subdir,subdir=/deep,rellinks,text=below",
                   "/t-plugin/subdir");
    assert_content("/t-plugin/subdir/text", "below");
    assert_content("/t-plugin/subdir/link", "below");
    assert_true(has_entry("/t-plugin/subdir", "link"));
    assert_false(has_entry("/t-plugin/subdir", "mounts"));
    assert_int_equal(df_call_readlinkat(AT_FDCWD, "/t-plugin/subdir/link", target, sizeof(target)),
                     4);
    assert_string_equal(target, "text");
    stop_plugin(plugin, 0);
}

static void test_module_iconv_on_top_of_another(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_high", "-omodules=subdir:iconv,subdir=/",
                   "-ofrom_code=ISO-8859-1,to_code=UTF-8,text=stacked", "/t-plugin/iconv");
    assert_content("/t-plugin/iconv/text", "stacked");
    assert_content("/t-plugin/iconv/caf\303\251", "coffee");
    assert_true(has_entry("/t-plugin/iconv", "caf\303\251"));
    assert_false(has_entry("/t-plugin/iconv", "caf\351"));
    stop_plugin(plugin, 0);
}

/* init, loop, destroy and the rest of main, all on main's own thread, in libfuse's order. */
static void test_life_of_a_program(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    char option[128];
    char *witness = temporary_file();
    snprintf(option, sizeof(option), "-owitness=%s", witness);
    assert_started(&plugin, "hello_high", option, "/t-plugin/life");
    assert_file_says(witness, "init ");
    stop_plugin(plugin, 0);
    assert_file_says(witness, "init destroy returns ");
    unlink(witness);
    free(witness);
}

static void test_mountpoint_is_relative_to_the_working_directory(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    char cwd[512], path[600];
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_started(&plugin, "hello_low", "-otext=here", "t-plugin-relative");
    snprintf(path, sizeof(path), "%s/t-plugin-relative/text", cwd);
    assert_content(path, "here");
    stop_plugin(plugin, 0);
}

static void test_read_only_mount(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_high", "-oro", "/t-plugin/ro");
    assert_int_equal(df_call_mkdirat(AT_FDCWD, "/t-plugin/ro/dir", 0755), -EROFS);
    stop_plugin(plugin, 0);
}

/* ---- ends --------------------------------------------------------------------------------- */

static void test_busy_while_files_are_open(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    int status = -77;
    assert_started(&plugin, "hello_high", "-otext=busy", "/t-plugin/busy");
    int fd = open_file("/t-plugin/busy/text");
    assert_true(fd >= 0);
    assert_int_equal(df_plugin_stop(plugin, 0, &status), -EBUSY);
    assert_content("/t-plugin/busy/text", "busy");
    assert_int_equal(df_call_close(fd), 0);
    stop_plugin(plugin, 0);
}

static void test_lazy_end_waits_for_the_last_file(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    int status = -77;
    char option[128], text[8] = "";
    char *witness = temporary_file();
    int threads = count_entries("/proc/self/task");
    snprintf(option, sizeof(option), "-owitness=%s", witness);
    assert_started(&plugin, "hello_high", option, "-otext=lazy", "/t-plugin/lazy");
    int fd = open_file("/t-plugin/lazy/text");
    assert_int_equal(df_plugin_stop(plugin, DF_DETACH_LAZY, &status), 0);
    assert_int_equal(status, -1);
    assert_int_equal(open_file("/t-plugin/lazy/text"), DF_NOT_OURS);
    assert_int_equal(df_call_pread(fd, text, 4, 0), 4);
    assert_string_equal(text, "lazy");
    assert_file_says(witness, "init ");
    assert_int_equal(df_call_close(fd), 0);
    await_threads(threads);
    assert_file_says(witness, "init destroy returns ");
    unlink(witness);
    free(witness);
}

static void test_lazy_end_without_files_is_an_ordinary_one(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    int status = -77;
    assert_started(&plugin, "hello_high", "/t-plugin/idle");
    assert_int_equal(df_plugin_stop(plugin, DF_DETACH_LAZY, &status), 0);
    assert_int_equal(status, 0);
}

static void test_program_ends_itself_from_an_operation(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_high", "-otext=x", "/t-plugin/end");
    int id = df_plugin_mount_of(plugin)->id;
    int fd = open_file("/t-plugin/end/end");
    assert_true(fd >= 0);
    assert_int_equal(df_call_close(fd), 0);
    df_mount_wait(id);
    stop_plugin(plugin, 0);
}

/* The newest thread of the process. */
static int newest_task(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int newest = 0;
    for (struct dirent *entry; (entry = readdir(tasks));)
        if (atoi(entry->d_name) > newest)
            newest = atoi(entry->d_name);
    closedir(tasks);
    return newest;
}

/* How often it has gone to sleep. */
static long sleeps_of(int task)
{
    char path[64], line[128];
    long count = -1;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", task);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    if (file)
        fclose(file);
    return count;
}

static void *stop_in_vain(void *plugin)
{
    int status;
    return (void *)(intptr_t)df_plugin_stop(plugin, 0, &status);
}

/* Somebody unmounts it, and waits for a call that opens a file. */
static void test_program_ends_itself_while_it_is_unmounted_in_vain(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    pthread_t unmounting;
    void *result;
    int error;
    assert_started(&plugin, "hello_low", "-otext=x", "/t-plugin/vain");
    int task = newest_task();
    struct df_mount *mount = df_plugin_mount_of(plugin);
    int id = mount->id;
    struct df_thread *thread = df_gate_enter(&error);
    assert_true(df_gate_pin(thread, mount, id));
    pthread_create(&unmounting, NULL, stop_in_vain, plugin);
    while (atomic_load(&mount->live))
        sched_yield();
    long before = sleeps_of(task);
    df_plugin_exit(plugin);
    while (sleeps_of(task) == before)
        sched_yield();
    struct df_file *file = df_file_new(thread, mount, atomic_load(&mount->fs), O_RDONLY);
    df_gate_leave(thread);
    pthread_join(unmounting, &result);
    assert_int_equal((intptr_t)result, -EBUSY);
    thread = df_gate_enter(&error);
    df_file_discard(thread, file);
    df_gate_leave(thread);
    df_mount_wait(id);
    stop_plugin(plugin, 0);
}

static void test_program_ends_itself_before_it_serves(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_high", "-oend_at_init", "/t-plugin/early");
    stop_plugin(plugin, 0);
}

static void test_mountpoint_in_use(void **state)
{
    (void)state;
    struct df_plugin *plugin, *second;
    assert_started(&plugin, "hello_high", "-otext=first", "/t-plugin/twice");
    assert_int_equal(start(&second, "hello_high", "/t-plugin/twice", NULL), -EBUSY);
    assert_non_null(strstr(message, "/t-plugin/twice"));
    assert_non_null(strstr(message, "unmount it first"));
    assert_content("/t-plugin/twice/text", "first");
    stop_plugin(plugin, 0);
}

static void test_a_hundred_mounts_leave_nothing(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_high", "-otext=warm", "/t-plugin/many");
    stop_plugin(plugin, 0);
    assert_started(&plugin, "hello_low", "-otext=warm", "/t-plugin/many");
    stop_plugin(plugin, 0);
    int descriptors = count_entries("/proc/self/fd");
    int threads = count_entries("/proc/self/task");
    for (int i = 0; i < 100; i++) {
        assert_started(&plugin, i % 2 ? "hello_high" : "hello_low", "-otext=again",
                       "/t-plugin/many");
        assert_content("/t-plugin/many/text", "again");
        stop_plugin(plugin, 0);
    }
    assert_int_equal(count_entries("/proc/self/fd"), descriptors);
    assert_int_equal(count_entries("/proc/self/task"), threads);
}

/* Its code, its session and its mount's struct must still be there. */
static void test_program_leaves_a_thread_behind(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    int pipes[2];
    char option[32], byte;
    int threads = count_entries("/proc/self/task");
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    snprintf(option, sizeof(option), "-otell=%d,text=stray", pipes[1]);
    assert_started(&plugin, "hello_low", option, "/t-plugin/stray");
    assert_content("/t-plugin/stray/text", "stray");
    stop_plugin(plugin, 0);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    await_threads(threads);
    close(pipes[0]);
    close(pipes[1]);
}

/* main's thread does not exist in the child: stopping there must neither wait nor run the plugin's
 * end a second time. */
static void test_stop_in_a_forked_child(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    char option[128];
    char *witness = temporary_file();
    snprintf(option, sizeof(option), "-owitness=%s", witness);
    assert_started(&plugin, "hello_high", option, "-otext=fork", "/t-plugin/fork");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int status = -77;
        alarm(20);
        int fd = open_file("/t-plugin/fork/text");
        int ok = fd >= 0 && df_plugin_stop(plugin, 0, &status) == -EBUSY &&
                 df_call_close(fd) == 0 && df_plugin_stop(plugin, 0, &status) == 0 && status == 0 &&
                 open_file("/t-plugin/fork/text") == DF_NOT_OURS;
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_content("/t-plugin/fork/text", "fork");
    stop_plugin(plugin, 0);
    assert_file_says(witness, "init destroy returns ");
    unlink(witness);
    free(witness);
}

/* ---- programs that do not mount ------------------------------------------------------------ */

static void test_main_fails(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_int_equal(start(&plugin, "odd", "status", "7", NULL), -EIO);
    assert_non_null(strstr(message, "odd.so: main() returned 7 before it mounted anything"));
    assert_int_equal(start(&plugin, "odd", "log", NULL), -EIO);
    assert_ptr_equal(strstr(message, "the key is missing\n"), message);
    assert_non_null(strstr(message, "returned 3"));
    assert_int_equal(start(&plugin, "odd", "own-log", NULL), -EIO);
    assert_null(strstr(message, "the key is missing"));
    assert_int_equal(start(&plugin, "odd", "log", NULL), -EIO); /* each has its own */
    assert_non_null(strstr(message, "the key is missing"));
}

static void test_help_and_version_are_in_the_message(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_int_equal(start(&plugin, "hello_high", "--help", NULL), -EIO);
    assert_non_null(strstr(message, "usage: hello_high [options] <mountpoint>"));
    assert_non_null(strstr(message, "-o entry_timeout=T"));
    assert_non_null(strstr(message, "-o subdir=DIR"));
    assert_non_null(strstr(message, "returned 0"));
    assert_int_equal(start(&plugin, "hello_high", "--version", NULL), -EIO);
    assert_non_null(strstr(message, "FUSE library version 3."));
}

static void test_command_line_errors_are_in_the_message(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_int_equal(start(&plugin, "hello_high", NULL), -EIO);
    assert_non_null(strstr(message, "no mountpoint specified"));
    assert_non_null(strstr(message, "returned 2"));
    assert_int_equal(start(&plugin, "hello_high", "-onothing", "/t-plugin/x", NULL), -EIO);
    assert_non_null(strstr(message, "unknown option(s): `-o nothing'"));
    assert_non_null(strstr(message, "returned 3"));
    assert_int_equal(start(&plugin, "hello_high", "/t-plugin/x", "/t-plugin/y", NULL), -EIO);
    assert_non_null(strstr(message, "invalid argument `/t-plugin/y'"));
    assert_int_equal(start(&plugin, "odd", "descriptor", NULL), -EIO);
    assert_non_null(strstr(message, "returned 50"));
}

static void test_mains_surroundings(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(start(&plugin, "odd", "signals", NULL), -EIO);
    assert_non_null(strstr(message, "returned 40"));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < SIGRTMAX; signal++)
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));

    for (int i = 0; i < 2; i++) {
        assert_int_equal(start(&plugin, "odd", "-a", "-b", "5", NULL), -EIO);
        assert_non_null(strstr(message, "returned 66"));
    }
    char *argv[] = {"odd", strdup("arguments"), "x", NULL};
    const struct df_plugin_program odd = {.library = PLUGINS "odd.so", .argc = 3, .argv = argv};
    assert_int_equal(df_plugin_start(&odd, &plugin, message, sizeof(message)), -EIO);
    assert_non_null(strstr(message, "returned 3"));
    assert_string_equal(argv[1], "arguments");
    free(argv[1]);
}

static void test_long_logs_keep_their_end(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    char *argv[] = {"odd", "much", NULL};
    const struct df_plugin_program odd = {.library = PLUGINS "odd.so", .argc = 2, .argv = argv};
    char tiny[24];
    assert_int_equal(start(&plugin, "odd", "much", NULL), -EIO);
    assert_int_equal(strlen(message), sizeof(message) - 1);
    assert_non_null(strstr(message, "line 1999 of many"));
    assert_int_equal(df_plugin_start(&odd, &plugin, tiny, sizeof(tiny)), -EIO);
    assert_string_equal(tiny + sizeof(tiny) - 9, "anything");
    assert_int_equal(df_plugin_start(&odd, &plugin, NULL, 0), -EIO);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void assert_refused(const char *path, int error, const char *reason)
{
    struct df_plugin *plugin;
    int result = start(&plugin, path, "/t-plugin/refused", NULL);
    if (result != error || !strstr(message, reason))
        print_error("%s: %d, %s\n", path, result, message);
    assert_int_equal(result, error);
    assert_non_null(strstr(message, reason));
    assert_non_null(strstr(message, path));
}

static void test_objects_that_are_no_plugins(void **state)
{
    (void)state;
    assert_refused("without_main", -ENOEXEC, "has no main()");
    assert_refused("without_fuse", -ENOEXEC, "is not linked to libdf3.so.3 but to lib");
    assert_refused("real_fuse", -ENOEXEC, "would make a kernel mount");
    assert_refused("unresolved", -ENOEXEC, "function_that_nobody_has");
    assert_refused(STAGE_LIB "libdf3.so.3", -ENOEXEC, "is not linked to libdf3.so.3");
    assert_refused(STAGE_LIB "libdirectfuse.so", -ENOEXEC, "is not linked to libdf3.so.3");
    assert_refused("/bin/true", -ENOEXEC, "does not link to libfuse");
}

static void test_files_that_are_no_objects(void **state)
{
    (void)state;
    static const char script[] = "#!/bin/sh\nexit 0\n";
    char *path = temporary_file();
    assert_refused("/no/such/file", -ENOENT, "No such file");
    assert_refused("/tmp/", -EACCES, "Permission denied");
    assert_refused(path, -ENOEXEC, "no program");
    write_file(path, script, strlen(script));
    assert_refused(path, -ENOEXEC, "script");
    write_file(path, "\177ELF", 4);
    assert_refused(path, -ENOEXEC, "truncated");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, -EACCES, "Permission denied");
    unlink(path);
    free(path);
}

/* Every cut through the object: read fully or refused, never a crash, never run. */
static void test_truncated_and_foreign_objects(void **state)
{
    (void)state;
    size_t size;
    char *path = temporary_file();
    unsigned char *data = read_whole(PLUGINS "without_main.so", &size);
    for (size_t cut = 0; cut < size; cut += size / 40 + 1) {
        struct df_plugin *plugin;
        write_file(path, data, cut);
        assert_int_equal(start(&plugin, path, NULL), -ENOEXEC);
    }
    Elf64_Ehdr *header = (Elf64_Ehdr *)data;
    header->e_machine = EM_S390;
    write_file(path, data, size);
    assert_refused(path, -ENOEXEC, "another machine");
    header->e_ident[EI_CLASS] = ELFCLASS32;
    write_file(path, data, size);
    assert_refused(path, -ENOEXEC, "another machine");
    unlink(path);
    free(path);
    free(data);
}

/* Runs in a child with libfuse3 in its global scope, where its functions would come first. */
static int refuses_beside_libfuse(void)
{
    struct df_plugin *plugin;
    if (start(&plugin, "hello_high", "/t-plugin/beside", NULL) != -ENOEXEC)
        return 1;
    if (strstr(message, "itself linked to libfuse3"))
        return 0;
    fprintf(stderr, "%s\n", message);
    return 2;
}

static void test_process_that_is_linked_to_libfuse(void **state)
{
    (void)state;
    void *real = dlopen("libfuse3.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!real) {
        print_message("libfuse3.so.3 is not installed (apt-get install libfuse3-3)\n");
        skip();
    }
    dlclose(real);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("LD_PRELOAD", "libfuse3.so.3", 1);
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
        execl("/proc/self/exe", "test_plugin", "beside-libfuse", NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *mount_and_unmount(void *argument)
{
    const char *point = argument;
    char path[128];
    for (int i = 0; i < 10; i++) {
        struct df_plugin *plugin;
        char *argv[] = {"hello", "-otext=many", (char *)point, NULL};
        const struct df_plugin_program program = {.library = i % 2 ? PLUGINS "hello_low.so"
                                                                   : PLUGINS "hello_moves.so",
                                                  .argc = 3,
                                                  .argv = argv};
        int status;
        if (df_plugin_start(&program, &plugin, NULL, 0) != 0)
            return "start";
        snprintf(path, sizeof(path), "%s/text", point);
        int fd = open_file(path);
        if (fd < 0 || df_call_close(fd) != 0)
            return "open";
        if (df_plugin_stop(plugin, 0, &status) != 0 || status != 0)
            return "stop";
    }
    return NULL;
}

static void test_mounts_from_many_threads(void **state)
{
    (void)state;
    static char *const points[] = {"/t-plugin/a", "/t-plugin/b", "/t-plugin/c", "/t-plugin/d"};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, mount_and_unmount, points[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_string_equal(failed ? failed : "", "");
    }
}

int main(int argc, char *argv[])
{
    /* This program contains the library's code, but does not lie beside the ABI library. */
    if (!dlopen(STAGE_LIB "libdf3.so.3", RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "beside-libfuse") == 0)
        return refuses_beside_libfuse();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_main_fails),
        cmocka_unit_test(test_help_and_version_are_in_the_message),
        cmocka_unit_test(test_command_line_errors_are_in_the_message),
        cmocka_unit_test(test_mains_surroundings),
        cmocka_unit_test(test_long_logs_keep_their_end),
        cmocka_unit_test(test_objects_that_are_no_plugins),
        cmocka_unit_test(test_files_that_are_no_objects),
        cmocka_unit_test(test_truncated_and_foreign_objects),
        cmocka_unit_test(test_process_that_is_linked_to_libfuse),
        cmocka_unit_test(test_high_level_program_answers),
        cmocka_unit_test(test_low_level_program_answers),
        cmocka_unit_test(test_replies_from_another_thread),
        cmocka_unit_test(test_single_threaded_and_own_loops),
        cmocka_unit_test(test_two_mounts_share_no_globals),
        cmocka_unit_test(test_module_subdir),
        cmocka_unit_test(test_module_iconv_on_top_of_another),
        cmocka_unit_test(test_life_of_a_program),
        cmocka_unit_test(test_mountpoint_is_relative_to_the_working_directory),
        cmocka_unit_test(test_read_only_mount),
        cmocka_unit_test(test_busy_while_files_are_open),
        cmocka_unit_test(test_lazy_end_waits_for_the_last_file),
        cmocka_unit_test(test_lazy_end_without_files_is_an_ordinary_one),
        cmocka_unit_test(test_program_ends_itself_from_an_operation),
        cmocka_unit_test(test_program_ends_itself_while_it_is_unmounted_in_vain),
        cmocka_unit_test(test_program_ends_itself_before_it_serves),
        cmocka_unit_test(test_mountpoint_in_use),
        cmocka_unit_test(test_program_leaves_a_thread_behind),
        cmocka_unit_test(test_a_hundred_mounts_leave_nothing),
        cmocka_unit_test(test_stop_in_a_forked_child),
        cmocka_unit_test(test_mounts_from_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
