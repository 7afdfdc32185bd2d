/*
 * What a program may do around a copy: cancel its thread, fork, take signals. In the directory of the first
 * argument.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <copyfile.h>
#include <haulage.h>

static void fail(int line, const char *what)
{
    fprintf(stderr, "line %d: %s (errno %d)\n", line, what, errno);
    exit(1);
}

#define CHECK(holds) ((holds) ? (void)0 : fail(__LINE__, #holds))

enum { FILES = 200, FILE_BYTES = 20000 };

static void make_tree(void)
{
    static char bytes[FILE_BYTES];
    char name[64];
    int at, fd;
    CHECK(mkdir("tree", 0700) == 0);
    for (at = 0; at < FILES; at++) {
        memset(bytes, 'a' + at % 26, sizeof(bytes));
        snprintf(name, sizeof(name), "tree/%d", at);
        fd = open(name, O_WRONLY | O_CREAT, 0600);
        CHECK(fd >= 0 && write(fd, bytes, sizeof(bytes)) == FILE_BYTES && close(fd) == 0);
    }
}

static int is_whole(const char *tree)
{
    static char found[FILE_BYTES + 1];
    char name[128];
    int at, fd;
    for (at = 0; at < FILES; at++) {
        snprintf(name, sizeof(name), "%s/%d", tree, at);
        fd = open(name, O_RDONLY);
        if (fd < 0 || read(fd, found, sizeof(found)) != FILE_BYTES || close(fd) != 0
            || found[0] != 'a' + at % 26 || memcmp(found, found + 1, FILE_BYTES - 1) != 0) {
            return 0;
        }
    }
    return 1;
}

/* A thread that is cancelled while it copies ends at its own next cancellation point. */

static volatile sig_atomic_t calls;

static void *copy_until_cancelled(void *context)
{
    haulage_state *state = (haulage_state *)context;
    for (;;) {
        CHECK(haulage_copy_file("tree/1", "cancelled file", NULL) == 0);
        CHECK(haulage_copy_tree("tree", "cancelled tree", state) == 0);
        CHECK(copyfile("tree/2", "cancelled file", NULL, COPYFILE_DATA) == 0);
        calls++;
        pthread_testcancel();
    }
    return NULL;
}

static void cancellation(void)
{
    int round;
    haulage_state *state = haulage_state_new();
    for (round = 0; round < 10; round++) {
        pthread_t thread;
        void *ended = NULL;
        int before = calls;
        CHECK(pthread_create(&thread, NULL, copy_until_cancelled, state) == 0);
        while (calls < before + 1 + round % 3) {
            usleep(100);
        }
        usleep((useconds_t)round * 100);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &ended) == 0 && ended == PTHREAD_CANCELED);
    }
    CHECK(haulage_copy_tree("tree", "after cancellation", state) == 0 && is_whole("after cancellation"));
    haulage_state_free(state);
    /* The state is that of the caller again. */
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &round) == 0 && round == PTHREAD_CANCEL_ENABLE);
    CHECK(haulage_copy_file("tree/1", "cancelled file", NULL) == 0);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &round) == 0 && round == PTHREAD_CANCEL_DISABLE);
}

/* A child of a program that copies on other threads copies too. */

static volatile sig_atomic_t ended;

static void *copy_until_ended(void *context)
{
    haulage_state *state = haulage_state_new();
    while (!ended) {
        CHECK(haulage_copy_tree("tree", (const char *)context, state) == 0);
    }
    haulage_state_free(state);
    return NULL;
}

static void forks(void)
{
    static char left[] = "left", right[] = "right";
    pthread_t threads[2];
    int child;
    CHECK(pthread_create(&threads[0], NULL, copy_until_ended, left) == 0);
    CHECK(pthread_create(&threads[1], NULL, copy_until_ended, right) == 0);
    for (child = 0; child < 8; child++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            /* The end of a child that waits for ever. */
            alarm(20);
            _exit(haulage_copy_tree("tree", "child", NULL) == 0 && is_whole("child") ? 0 : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ended = 1;
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    CHECK(is_whole("left") && is_whole("right"));
}

/* A timer whose handler interrupts system calls. */

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void signals(void)
{
    struct sigaction action;
    struct itimerval timer, none;
    int round, pipes[2], dst;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_alarm;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    memset(&none, 0, sizeof(none));
    timer.it_value.tv_sec = timer.it_interval.tv_sec = 0;
    timer.it_value.tv_usec = timer.it_interval.tv_usec = 200;
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    for (round = 0; round < 4; round++) {
        char name[64];
        snprintf(name, sizeof(name), "interrupted %d", round);
        CHECK(haulage_copy_tree("tree", name, NULL) == 0 && is_whole(name));
    }
    /* A read that waits is interrupted too. */
    dst = open("through a pipe", O_WRONLY | O_CREAT, 0600);
    CHECK(dst >= 0 && pipe(pipes) == 0);
    round = (int)fork();
    CHECK(round >= 0);
    if (round == 0) {
        int byte;
        for (byte = 0; byte < 50; byte++) {
            usleep(1000);
            if (write(pipes[1], "x", 1) != 1) {
                _exit(1);
            }
        }
        _exit(0);
    }
    CHECK(close(pipes[1]) == 0);
    CHECK(haulage_copy_fds(pipes[0], dst, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0 && alarms > 0);
    CHECK(lseek(dst, 0, SEEK_CUR) == 50 && close(dst) == 0 && close(pipes[0]) == 0);
    while (waitpid((pid_t)round, NULL, 0) < 0) {
        CHECK(errno == EINTR);
    }
}

int main(int count, char **arguments)
{
    CHECK(count == 2 && chdir(arguments[1]) == 0);
    make_tree();
    cancellation();
    forks();
    signals();
    puts("passed");
    return 0;
}
