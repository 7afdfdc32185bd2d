/* Every function of haulage.h, from C and C++, in the directory of the first argument. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <haulage.h>

static void fail(int line, const char *what)
{
    fprintf(stderr, "line %d: %s (errno %d)\n", line, what, errno);
    exit(1);
}

#define CHECK(holds) ((holds) ? (void)0 : fail(__LINE__, #holds))

static void make_file(const char *name, size_t bytes)
{
    FILE *file = fopen(name, "w");
    size_t at;
    CHECK(file != NULL);
    for (at = 0; at < bytes; at++) {
        CHECK(fputc((int)(at * 7 % 251), file) != EOF);
    }
    CHECK(fclose(file) == 0);
}

static int same(const char *left, const char *right)
{
    FILE *one = fopen(left, "r"), *two = fopen(right, "r");
    int a, b;
    CHECK(one != NULL && two != NULL);
    do {
        a = fgetc(one);
        b = fgetc(two);
    } while (a == b && a != EOF);
    CHECK(fclose(one) == 0 && fclose(two) == 0);
    return a == b;
}

struct seen {
    int calls;
    int answer;
    uint64_t bytes;
    int errnum;
    char path[256];
    pthread_t thread;
};

static int on_progress(const haulage_progress *progress, void *context)
{
    struct seen *seen = (struct seen *)context;
    seen->calls++;
    seen->bytes = progress->bytes;
    seen->thread = pthread_self();
    return seen->answer;
}

static int on_error(const haulage_error *error, void *context)
{
    struct seen *seen = (struct seen *)context;
    seen->calls++;
    seen->errnum = error->errnum;
    snprintf(seen->path, sizeof(seen->path), "%s", error->path);
    CHECK(strlen(error->text) > 0);
    return seen->answer;
}

/* What the state tells after a call with wrong arguments. */
static void refused(const haulage_state *state, int errnum)
{
    CHECK(haulage_last_errno(state) == errnum && haulage_last_path(state) == NULL);
    CHECK(haulage_last_text(state) != NULL && haulage_engine_used(state) == NULL);
    CHECK(haulage_count(state, HAULAGE_DATA_BYTES) == 0 && haulage_count(state, HAULAGE_ERRORS) == 1);
}

static void files(void)
{
    haulage_state *state = haulage_state_new();
    CHECK(state != NULL);
    make_file("file", 300000);
    CHECK(haulage_copy_file("file", "copy", NULL) == 0 && same("file", "copy"));
    CHECK(haulage_copy_file("file", "copy", state) == 0 && same("file", "copy"));
    CHECK(haulage_count(state, HAULAGE_DATA_BYTES) == 300000);
    CHECK(haulage_engine_used(state) != NULL && haulage_last_text(state) == NULL);
    errno = 0;
    CHECK(haulage_copy_file("none", "copy", state) == -1 && errno == ENOENT);
    CHECK(haulage_last_errno(state) == ENOENT && strcmp(haulage_last_path(state), "none") == 0);
    CHECK(strstr(haulage_last_text(state), "none") != NULL);
    CHECK(haulage_copy_file("none", "copy", NULL) == -1 && errno == ENOENT);
    CHECK(haulage_copy_file(NULL, "copy", NULL) == -1 && errno == EINVAL);
    CHECK(haulage_copy_file("file", "copy", state) == 0);
    CHECK(haulage_copy_file("file", NULL, state) == -1 && errno == EINVAL);
    refused(state, EINVAL);
    CHECK(haulage_copy_tree(NULL, "copy", state) == -1 && errno == EINVAL);
    refused(state, EINVAL);
    CHECK(haulage_set_flags(NULL, 0) == -1 && errno == EINVAL);
    CHECK(haulage_set_flags(state, UINT64_C(1) << 60) == -1 && errno == EINVAL);
    CHECK(haulage_set_flags(state, HAULAGE_EXCL) == 0);
    CHECK(haulage_copy_file("file", "copy", state) == -1 && errno == EEXIST);
    CHECK(haulage_set_flags(state, HAULAGE_VERIFY | HAULAGE_ATOMIC) == 0);
    CHECK(haulage_set_text(state, HAULAGE_ENGINE, "no engine") == -1 && errno == EINVAL);
    CHECK(haulage_set_text(state, HAULAGE_ENGINE, "sendfile") == 0);
    CHECK(haulage_copy_file("file", "copy", state) == 0);
    CHECK(strcmp(haulage_engine_used(state), "sendfile") == 0);
    CHECK(haulage_set_text(state, HAULAGE_ENGINE, "mmap:dst") == 0);
    CHECK(haulage_copy_file("file", "copy", state) == -1 && errno == EINVAL);
    CHECK(haulage_set_number(state, 99, 1) == -1 && errno == EINVAL);
    CHECK(haulage_set_text(state, 99, "") == -1 && errno == EINVAL);
    CHECK(haulage_version() != NULL && haulage_count(NULL, HAULAGE_FILES) == 0);
    haulage_state_free(state);
    haulage_state_free(NULL);
}

static void descriptors(void)
{
    int src = open("file", O_RDONLY), dst = open("copy", O_WRONLY);
    int pipes[2];
    struct seen progress, errors;
    haulage_state *state = haulage_state_new();
    memset(&progress, 0, sizeof(progress));
    memset(&errors, 0, sizeof(errors));
    CHECK(src >= 0 && dst >= 0 && pipe(pipes) == 0);
    make_file("copy", 500000);
    CHECK(haulage_copy_fds(src, dst, NULL) == 0 && same("file", "copy"));
    CHECK(write(pipes[1], "0123", 4) == 4 && close(pipes[1]) == 0);
    CHECK(haulage_copy_fds(pipes[0], dst, state) == 0);
    CHECK(haulage_count(state, HAULAGE_DATA_BYTES) == 4);
    CHECK(fcntl(src, F_GETFD) != -1 && fcntl(dst, F_GETFD) != -1 && fcntl(pipes[0], F_GETFD) != -1);
    CHECK(haulage_copy_fds(-1, dst, NULL) == -1 && errno == EBADF);
    CHECK(haulage_copy_fds(-1, dst, state) == -1 && errno == EBADF);
    refused(state, EBADF);
    CHECK(haulage_copy_fds(src, 1000, NULL) == -1 && errno == EBADF);
    CHECK(haulage_copy_fds(src, src, NULL) == -1 && errno == EINVAL);
    /* The same with callbacks. */
    CHECK(haulage_on_progress(state, on_progress, &progress) == 0);
    CHECK(haulage_on_error(state, on_error, &errors) == 0);
    CHECK(haulage_copy_fds(src, dst, state) == 0 && same("file", "copy"));
    CHECK(progress.calls > 0 && progress.bytes == 300000 && errors.calls == 0);
    CHECK(haulage_count(state, HAULAGE_DATA_BYTES) == 300000 && haulage_engine_used(state) != NULL);
    CHECK(haulage_copy_fds(src, src, state) == -1 && errno == EINVAL);
    CHECK(errors.calls == 1 && errors.errnum == EINVAL);
    progress.answer = HAULAGE_QUIT;
    CHECK(haulage_copy_fds(src, dst, state) == -1 && errno == ECANCELED);
    CHECK(close(src) == 0 && close(dst) == 0 && close(pipes[0]) == 0);
    haulage_state_free(state);
}

/* The bytes that were copied before an error are counted. */
static void incomplete_files(void)
{
    struct rlimit old, limit;
    struct stat found;
    haulage_state *state = haulage_state_new();
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = 100000;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(haulage_set_flags(state, HAULAGE_CLONE_NEVER) == 0);
    CHECK(haulage_copy_file("file", "incomplete", state) == -1 && errno == EFBIG);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0 && signal(SIGXFSZ, SIG_DFL) == SIG_IGN);
    CHECK(stat("incomplete", &found) == 0 && found.st_size > 0);
    CHECK(haulage_count(state, HAULAGE_DATA_BYTES) == (uint64_t)found.st_size);
    CHECK(haulage_engine_used(state) != NULL && haulage_count(state, HAULAGE_ERRORS) == 1);
    haulage_state_free(state);
}

static int free_state(const haulage_progress *progress, void *context)
{
    haulage_state **state = (haulage_state **)context;
    (void)progress;
    haulage_state_free(*state);
    *state = NULL;
    return HAULAGE_CONTINUE;
}

/* The copy goes on with the state that its callback has freed. */
static void freed_states(void)
{
    haulage_state *state = haulage_state_new(), *used = state;
    CHECK(haulage_set_text(state, HAULAGE_EXCLUDE, "nothing") == 0);
    CHECK(haulage_on_progress(state, free_state, &state) == 0);
    CHECK(haulage_copy_file("file", "of a freed state", used) == 0 && state == NULL);
    CHECK(same("file", "of a freed state"));
}

static void trees(void)
{
    struct seen progress, errors;
    haulage_state *state = haulage_state_new();
    struct stat found;
    memset(&progress, 0, sizeof(progress));
    memset(&errors, 0, sizeof(errors));
    CHECK(mkdir("tree", 0700) == 0 && mkdir("tree/dir", 0700) == 0);
    make_file("tree/one", 10);
    make_file("tree/dir/two", 20);
    make_file("tree/three.tmp", 30);
    CHECK(symlink("one", "tree/link") == 0);
    CHECK(haulage_set_flags(state, HAULAGE_ARCHIVE) == 0);
    CHECK(haulage_set_text(state, HAULAGE_EXCLUDE, "*.tmp") == 0);
    CHECK(haulage_on_progress(state, on_progress, &progress) == 0);
    CHECK(haulage_on_error(state, on_error, &errors) == 0);
    CHECK(haulage_copy_tree("tree", "tree copy", state) == 0);
    CHECK(same("tree/dir/two", "tree copy/dir/two") && stat("tree copy/three.tmp", &found) == -1);
    CHECK(lstat("tree copy/link", &found) == 0 && S_ISLNK(found.st_mode));
    CHECK(haulage_count(state, HAULAGE_FILES) == 2);
    CHECK(haulage_count(state, HAULAGE_DIRECTORIES) == 2);
    CHECK(haulage_count(state, HAULAGE_SYMLINKS) == 1);
    CHECK(haulage_count(state, HAULAGE_DATA_BYTES) == 30 && progress.bytes == 30);
    CHECK(haulage_engine_used(state) != NULL && strchr(haulage_engine_used(state), ':') == NULL);
    CHECK(progress.calls > 0 && errors.calls == 0);
    CHECK(pthread_equal(progress.thread, pthread_self()));
    /* An error, and each answer. */
    CHECK(unlink("tree copy/link") == 0 && mkdir("tree copy/link", 0700) == 0);
    CHECK(haulage_copy_tree("tree", "tree copy", state) == -1 && errors.calls == 1);
    CHECK(errno == errors.errnum && strcmp(errors.path, "tree copy/link") == 0);
    errors.answer = HAULAGE_SKIP;
    CHECK(haulage_copy_tree("tree", "tree copy", state) == 0 && errors.calls == 2);
    errors.answer = HAULAGE_QUIT;
    CHECK(haulage_copy_tree("tree", "tree copy", state) == -1);
    progress.answer = HAULAGE_QUIT;
    CHECK(rmdir("tree copy/link") == 0);
    CHECK(haulage_copy_tree("tree", "tree copy", state) == -1 && errno == ECANCELED);
    progress.answer = HAULAGE_CONTINUE;
    haulage_cancel(state);
    CHECK(haulage_copy_tree("tree", "never", state) == -1 && errno == ECANCELED);
    haulage_uncancel(state);
    CHECK(haulage_copy_tree("tree", "again", state) == 0);
    CHECK(haulage_on_progress(state, NULL, NULL) == 0 && haulage_on_error(state, NULL, NULL) == 0);
    CHECK(haulage_copy_tree("tree", "tree/inside", state) == -1 && errno == EINVAL);
    CHECK(haulage_copy_tree("none", "never", NULL) == -1 && errno == ENOENT);
    haulage_state_free(state);
}

/* Fewer where each call is slow. */
static int rounds = 20;

static void *copy_often(void *context)
{
    char name[64];
    int round;
    haulage_state *state = haulage_state_new();
    for (round = 0; round < rounds; round++) {
        snprintf(name, sizeof(name), "%s %d", (const char *)context, round);
        CHECK(haulage_copy_tree("tree", name, state) == 0);
        CHECK(haulage_copy_file("file", "shared", round % 2 ? state : NULL) == 0);
        CHECK(haulage_copy_file("none", name, state) == -1 && errno == ENOENT);
    }
    haulage_state_free(state);
    return NULL;
}

static void threads(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    pthread_t running[4];
    int at;
    for (at = 0; at < 4; at++) {
        CHECK(pthread_create(&running[at], NULL, copy_often, (void *)(uintptr_t)names[at]) == 0);
    }
    for (at = 0; at < 4; at++) {
        CHECK(pthread_join(running[at], NULL) == 0);
    }
}

int main(int count, char **arguments)
{
    struct sigaction before[65], after;
    int number;
    CHECK(count >= 2 && chdir(arguments[1]) == 0);
    if (getenv("ROUNDS") != NULL) {
        rounds = atoi(getenv("ROUNDS"));
    }
    memset(before, 0, sizeof(before));
    for (number = 1; number <= 64; number++) {
        (void)sigaction(number, NULL, &before[number]);
    }
    files();
    descriptors();
    freed_states();
    incomplete_files();
    trees();
    threads();
    for (number = 1; number <= 64; number++) {
        memset(&after, 0, sizeof(after));
        (void)sigaction(number, NULL, &after);
        CHECK(after.sa_handler == before[number].sa_handler);
    }
    puts("passed");
    return 0;
}
