/* A program for copyfile(3), in the directory of the first argument. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <copyfile.h>

static void fail(int line, const char *what)
{
    fprintf(stderr, "line %d: %s (errno %d)\n", line, what, errno);
    exit(1);
}

#define CHECK(holds) ((holds) ? (void)0 : fail(__LINE__, #holds))

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    CHECK(file != NULL && fputs(text, file) != EOF && fclose(file) == 0);
}

static int has(const char *name, const char *text)
{
    char found[64] = {0};
    FILE *file = fopen(name, "r");
    if (file == NULL) {
        return 0;
    }
    (void)!fread(found, 1, sizeof(found) - 1, file);
    CHECK(fclose(file) == 0);
    return strcmp(found, text) == 0;
}

static int exists(const char *name)
{
    struct stat found;
    return lstat(name, &found) == 0;
}

struct seen {
    int files, directories, cleanups, errors, progress, finished;
    int error_answer;
    const char *skip, *quit;
    long long copied;
};

static int on_status(int what, int stage, copyfile_state_t state, const char *src, const char *dst,
                     void *context)
{
    struct seen *seen = (struct seen *)context;
    CHECK(src != NULL && dst != NULL);
    if (stage == COPYFILE_ERR) {
        seen->errors++;
        return seen->error_answer;
    }
    if (what == COPYFILE_COPY_DATA && stage == COPYFILE_PROGRESS) {
        CHECK(copyfile_state_get(state, COPYFILE_STATE_COPIED, &seen->copied) == 0);
        seen->progress++;
    }
    if (what == COPYFILE_RECURSE_FILE && stage == COPYFILE_START) {
        seen->files++;
    }
    if (what == COPYFILE_RECURSE_FILE && stage == COPYFILE_FINISH) {
        seen->finished++;
    }
    if (what == COPYFILE_RECURSE_DIR && stage == COPYFILE_START) {
        seen->directories++;
    }
    if (what == COPYFILE_RECURSE_DIR_CLEANUP && stage == COPYFILE_FINISH) {
        seen->cleanups++;
    }
    if (stage == COPYFILE_START && seen->skip != NULL && strstr(src, seen->skip) != NULL) {
        return COPYFILE_SKIP;
    }
    if (stage == COPYFILE_START && seen->quit != NULL && strstr(src, seen->quit) != NULL) {
        return COPYFILE_QUIT;
    }
    return COPYFILE_CONTINUE;
}

static void set_callback(copyfile_state_t state, struct seen *seen)
{
    copyfile_callback_t callback = on_status;
    const void *pointer;
    /* ISO C has no conversion from a function to a pointer to an object. */
    memcpy(&pointer, &callback, sizeof(pointer));
    CHECK(copyfile_state_set(state, COPYFILE_STATE_STATUS_CB, pointer) == 0);
    CHECK(copyfile_state_set(state, COPYFILE_STATE_STATUS_CTX, seen) == 0);
}

static void one_file(void)
{
    struct stat found;
    const char *name;
    copyfile_state_t state = copyfile_state_alloc();
    struct seen seen;
    memset(&seen, 0, sizeof(seen));
    CHECK(state != NULL);
    write_file("file", "text");
    CHECK(chmod("file", 0604) == 0);
    CHECK(copyfile("file", "copy", NULL, COPYFILE_ALL) == 0 && has("copy", "text"));
    CHECK(stat("copy", &found) == 0 && (found.st_mode & 0777) == 0604);
    CHECK(copyfile("file", "copy", NULL, COPYFILE_DATA | COPYFILE_EXCL) == -1 && errno == EEXIST);
    CHECK(copyfile("none", "copy", NULL, COPYFILE_DATA) == -1 && errno == ENOENT);
    CHECK(copyfile("file", "copy", NULL, COPYFILE_PACK) == -1 && errno == ENOTSUP);
    CHECK(copyfile("file", "copy", NULL, COPYFILE_PRESERVE_DST_TRACKED) == -1 && errno == ENOTSUP);
    CHECK(copyfile(NULL, "copy", NULL, COPYFILE_DATA) == -1 && errno == EINVAL);
    CHECK(copyfile("file", "copy", NULL, COPYFILE_CLONE) == -1 && errno == EEXIST);
    CHECK(copyfile("file", "clone", NULL, COPYFILE_CLONE) == 0 && has("clone", "text"));
    write_file("other", "other");
    CHECK(copyfile("file", "other", NULL, COPYFILE_STAT) == 0 && has("other", "other"));
    CHECK(stat("other", &found) == 0 && (found.st_mode & 0777) == 0604);
    CHECK(copyfile("file", "copy", NULL, COPYFILE_CHECK | COPYFILE_DATA | COPYFILE_XATTR)
          == COPYFILE_DATA);
    CHECK(symlink("file", "link") == 0 && symlink("other", "there") == 0);
    CHECK(copyfile("link", "link copy", NULL, COPYFILE_ALL | COPYFILE_NOFOLLOW) == 0);
    CHECK(lstat("link copy", &found) == 0 && S_ISLNK(found.st_mode));
    CHECK(copyfile("file", "there", NULL, COPYFILE_DATA | COPYFILE_NOFOLLOW_DST) == 0);
    CHECK(has("other", "other") && has("there", "text"));
    CHECK(symlink("nowhere", "dangling") == 0);
    CHECK(copyfile("file", "dangling", NULL, COPYFILE_DATA | COPYFILE_EXCL) == -1 && errno == EEXIST);
    CHECK(copyfile("file", "dangling", NULL, COPYFILE_CLONE) == -1 && errno == EEXIST);
    CHECK(copyfile("file", "moved", state, COPYFILE_ALL | COPYFILE_MOVE) == 0);
    CHECK(has("moved", "text") && !exists("file"));
    CHECK(copyfile_state_get(state, COPYFILE_STATE_SRC_FILENAME, &name) == 0);
    CHECK(strcmp(name, "file") == 0);
    CHECK(copyfile_state_get(state, 99, &name) == -1 && errno == EINVAL);
    set_callback(state, &seen);
    CHECK(copyfile("moved", "file", state, COPYFILE_DATA) == 0);
    CHECK(seen.progress > 0 && seen.copied == 4);
    CHECK(copyfile_state_free(state) == 0 && copyfile_state_free(NULL) == 0);
}

static long long copied(copyfile_state_t state)
{
    long long copied = -1;
    CHECK(copyfile_state_get(state, COPYFILE_STATE_COPIED, &copied) == 0);
    return copied;
}

/* What is told of the bytes is of the last copy, and of the whole file. */
static void copied_bytes(void)
{
    struct rlimit old, limit;
    struct seen seen;
    copyfile_state_t state = copyfile_state_alloc();
    memset(&seen, 0, sizeof(seen));
    write_file("sparse", "text");
    CHECK(truncate("sparse", 1 << 20) == 0);
    CHECK(copyfile("sparse", "sparse copy", state, COPYFILE_DATA) == 0 && copied(state) == 1 << 20);
    CHECK(copyfile("none", "sparse copy", state, COPYFILE_DATA) == -1 && copied(state) == 0);
    set_callback(state, &seen);
    CHECK(copyfile("sparse", "sparse copy", state, COPYFILE_DATA) == 0 && copied(state) == 1 << 20);
    CHECK(seen.copied == copied(state));
    CHECK(copyfile("file", "copy", state, COPYFILE_PACK) == -1 && copied(state) == 0);
    CHECK(copyfile("file", "copy", state, COPYFILE_DATA) == 0 && copied(state) == 4);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = 2;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(copyfile("file", "part", state, COPYFILE_DATA) == -1 && errno == EFBIG);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0 && signal(SIGXFSZ, SIG_DFL) == SIG_IGN);
    CHECK(has("part", "te") && copied(state) == 2);
    CHECK(copyfile_state_free(state) == 0);
}

static void descriptors(void)
{
    int src = open("file", O_RDONLY), dst = open("by fd", O_RDWR | O_CREAT, 0600), fd;
    const char *name;
    bool cloned = true;
    copyfile_state_t state = copyfile_state_alloc();
    CHECK(src >= 0 && dst >= 0);
    CHECK(fcopyfile(src, dst, state, COPYFILE_ALL) == 0 && has("by fd", "text"));
    CHECK(copied(state) == 4);
    CHECK(copyfile_state_get(state, COPYFILE_STATE_WAS_CLONED, &cloned) == 0);
    CHECK(fcntl(src, F_GETFD) != -1 && fcntl(dst, F_GETFD) != -1);
    CHECK(fcopyfile(-1, dst, state, COPYFILE_DATA) == -1 && errno == EBADF);
    CHECK(fcopyfile(src, -1, NULL, COPYFILE_DATA | COPYFILE_CHECK) == COPYFILE_DATA);
    CHECK(fcopyfile(1000, -1, NULL, COPYFILE_DATA | COPYFILE_CHECK) == -1 && errno == EBADF);
    if (setxattr("file", "user.name", "1", 1, 0) == 0) {
        const copyfile_flags_t flags = COPYFILE_XATTR | COPYFILE_CHECK;
        CHECK(fcopyfile(src, -1, NULL, flags) == COPYFILE_XATTR);
        CHECK(fcopyfile(src, -1, NULL, flags | COPYFILE_NOFOLLOW_SRC) == COPYFILE_XATTR);
        CHECK(fcopyfile(src, -1, NULL, flags | COPYFILE_CLONE) == (COPYFILE_XATTR | COPYFILE_DATA));
    }
    /* The state tells of the last copy: of its names, or of its descriptors. */
    CHECK(copyfile("file", "by name", state, COPYFILE_DATA) == 0);
    CHECK(copyfile_state_get(state, COPYFILE_STATE_SRC_FD, &fd) == 0 && fd == -2);
    CHECK(fcopyfile(src, dst, state, COPYFILE_DATA) == 0);
    CHECK(copyfile_state_get(state, COPYFILE_STATE_DST_FILENAME, &name) == 0 && name == NULL);
    /* Names that the program has set are told, and not used. */
    CHECK(copyfile_state_set(state, COPYFILE_STATE_SRC_FILENAME, "told") == 0);
    CHECK(copyfile_state_set(state, COPYFILE_STATE_DST_FILENAME, "told too") == 0);
    CHECK(ftruncate(dst, 0) == 0 && copyfile(NULL, NULL, state, COPYFILE_DATA) == 0);
    CHECK(has("by fd", "text") && fcopyfile(src, dst, state, COPYFILE_DATA) == 0);
    CHECK(copyfile_state_get(state, COPYFILE_STATE_DST_FILENAME, &name) == 0);
    CHECK(strcmp(name, "told too") == 0);
    CHECK(close(src) == 0 && close(dst) == 0);
    CHECK(copyfile_state_free(state) == 0);
}

static int free_state(int what, int stage, copyfile_state_t state, const char *src, const char *dst,
                      void *context)
{
    int *calls = (int *)context;
    (void)what, (void)stage, (void)src, (void)dst;
    if ((*calls)++ == 0) {
        CHECK(copyfile_state_free(state) == 0);
    }
    return COPYFILE_CONTINUE;
}

/* The copy goes on with the state that its callback has freed. */
static void freed_states(void)
{
    copyfile_state_t state = copyfile_state_alloc();
    copyfile_callback_t callback = free_state;
    int calls = 0;
    const void *pointer;
    memcpy(&pointer, &callback, sizeof(pointer));
    CHECK(copyfile_state_set(state, COPYFILE_STATE_STATUS_CB, pointer) == 0);
    CHECK(copyfile_state_set(state, COPYFILE_STATE_STATUS_CTX, &calls) == 0);
    CHECK(copyfile("file", "of a freed state", state, COPYFILE_ALL) == 0 && calls > 0);
    CHECK(has("of a freed state", "text"));
}

static void trees(void)
{
    copyfile_state_t state = copyfile_state_alloc();
    struct seen seen;
    memset(&seen, 0, sizeof(seen));
    CHECK(mkdir("tree", 0755) == 0 && mkdir("tree/dir", 0755) == 0);
    write_file("tree/one", "1");
    write_file("tree/dir/two", "2");
    CHECK(copyfile("tree", "alone", NULL, COPYFILE_ALL) == 0);
    CHECK(exists("alone") && !exists("alone/one"));
    set_callback(state, &seen);
    CHECK(copyfile("tree", "all", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    CHECK(has("all/one", "1") && has("all/dir/two", "2"));
    CHECK(seen.files == 2 && seen.directories == 2 && seen.finished == 2 && seen.cleanups == 2);
    CHECK(copyfile("tree", "all", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    CHECK(has("all/tree/one", "1"));
    CHECK(mkdir("aside", 0755) == 0 && symlink("aside", "to aside") == 0);
    CHECK(copyfile("tree", "to aside", NULL, COPYFILE_ALL | COPYFILE_RECURSIVE | COPYFILE_NOFOLLOW_DST)
          == -1 && errno == ENOTDIR);
    CHECK(rmdir("aside") == 0 && mkdir("aside", 0755) == 0);
    CHECK(copyfile("tree", "to aside", NULL, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    CHECK(has("aside/tree/one", "1"));
    seen.skip = "two";
    CHECK(copyfile("tree", "some", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    CHECK(has("some/one", "1") && !exists("some/dir/two"));
    seen.skip = NULL;
    seen.quit = "dir";
    errno = 0;
    CHECK(copyfile("tree", "none", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == -1 && errno == 0);
    seen.quit = NULL;
    CHECK(mkdir("bad", 0755) == 0 && mkdir("bad/one", 0755) == 0);
    CHECK(copyfile("tree/", "bad", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    CHECK(seen.errors == 1 && has("bad/dir/two", "2"));
    seen.error_answer = COPYFILE_QUIT;
    CHECK(copyfile("tree/", "bad", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == -1);
    CHECK(copyfile("tree/", "bad", NULL, COPYFILE_ALL | COPYFILE_RECURSIVE) == -1 && errno == EISDIR);
    CHECK(copyfile_state_free(state) == 0);
}

int main(int count, char **arguments)
{
    CHECK(count == 2 && chdir(arguments[1]) == 0);
    one_file();
    copied_bytes();
    descriptors();
    freed_states();
    trees();
    puts("passed");
    return 0;
}
