/* A program with its own SIGBUS handler, in the directory of the first argument. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <haulage.h>

static void fail(int line, const char *what)
{
    fprintf(stderr, "line %d: %s (errno %d)\n", line, what, errno);
    exit(1);
}

#define CHECK(holds) ((holds) ? (void)0 : fail(__LINE__, #holds))

static sigjmp_buf back;
static volatile sig_atomic_t handled;

static void on_sigbus(int number)
{
    (void)number;
    handled++;
    siglongjmp(back, 1);
}

/* An access to a page that the file has lost. */
static void fault(void)
{
    int fd = open("lost", O_RDWR | O_CREAT, 0600);
    volatile char *page;
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    page = (volatile char *)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED && ftruncate(fd, 0) == 0);
    if (sigsetjmp(back, 1) == 0) {
        (void)page[0];
        CHECK(0);
    }
    CHECK(munmap((void *)page, 4096) == 0 && close(fd) == 0);
}

int main(int count, char **arguments)
{
    struct sigaction own, now;
    haulage_state *state = haulage_state_new();
    int src, dst;
    CHECK(count == 2 && chdir(arguments[1]) == 0);
    memset(&own, 0, sizeof(own));
    own.sa_handler = on_sigbus;
    CHECK(sigaction(SIGBUS, &own, NULL) == 0);
    src = open("src", O_RDWR | O_CREAT, 0600);
    dst = open("dst", O_RDWR | O_CREAT, 0600);
    CHECK(src >= 0 && dst >= 0 && ftruncate(src, 20 << 20) == 0);
    CHECK(pwrite(src, "x", 1, 100) == 1 && pwrite(src, "x", 1, 19 << 20) == 1);
    /* Without leave no handler is installed, whichever engine is wanted. */
    CHECK(haulage_set_text(state, HAULAGE_ENGINE, "mmap:dst") == 0);
    CHECK(haulage_copy_fds(src, dst, state) == -1 && errno == EINVAL);
    CHECK(haulage_copy_fds(src, dst, NULL) == 0);
    CHECK(haulage_copy_tree("src", "by name", NULL) == 0);
    CHECK(sigaction(SIGBUS, NULL, &now) == 0 && now.sa_handler == on_sigbus);
    fault();
    CHECK(handled == 1);
    /* With leave a fault that is not the library's is still the program's. */
    CHECK(haulage_set_flags(state, HAULAGE_ALLOW_SIGBUS_HANDLER) == 0);
    CHECK(haulage_copy_fds(src, dst, state) == 0);
    CHECK(strcmp(haulage_engine_used(state), "mmap") == 0);
    fault();
    CHECK(handled == 2);
    haulage_state_free(state);
    CHECK(close(src) == 0 && close(dst) == 0);
    puts("passed");
    return 0;
}
