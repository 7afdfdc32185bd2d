/*
 * A program as it is written for macOS, by the manual page copyfile(3) alone: it backs up a folder with a
 * line for each file, and knows nothing of this library. In the directory of the first argument.
 */

#include <copyfile.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPECT(holds)                                                                       \
    do {                                                                                    \
        if (!(holds)) {                                                                     \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #holds, strerror(errno)); \
            exit(EXIT_FAILURE);                                                             \
        }                                                                                   \
    } while (0)

/* What the user of the program wants to know, and what he does about it. */
typedef struct backup {
    unsigned entered, made, filled, left, started, finished, failed, reports;
    int last_errno, failed_what;
    off_t bytes;
    const char *stop_at;
    const char *leave_out;
    const char *leave_empty;
    int on_failure;
    int on_progress;
    bool is_new;
    char failed_name[256];
} backup_t;

static bool is_there(const char *path)
{
    struct stat sb;
    return lstat(path, &sb) == 0;
}

/* Whether the folder is there without an entry. */
static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    unsigned entries = 0;
    if (folder == NULL)
        return false;
    while ((entry = readdir(folder)) != NULL)
        entries += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return entries == 0;
}

static int status(int what, int stage, copyfile_state_t state, const char *src, const char *dst, void *ctx)
{
    backup_t *backup = (backup_t *)ctx;
    EXPECT(src != NULL && dst != NULL);
    switch (stage) {
    case COPYFILE_START:
        if (backup->stop_at != NULL && strstr(src, backup->stop_at) != NULL)
            return COPYFILE_QUIT;
        if (backup->leave_out != NULL && strstr(src, backup->leave_out) != NULL)
            return COPYFILE_SKIP;
        if (what == COPYFILE_RECURSE_DIR)
            backup->entered++;
        else if (what == COPYFILE_RECURSE_FILE)
            backup->started++;
        else if (what == COPYFILE_RECURSE_DIR_CLEANUP) {
            /* "all of the objects contained have been copied" */
            EXPECT(!backup->is_new || is_empty(src) == is_empty(dst));
            backup->filled++;
        }
        break;
    case COPYFILE_FINISH:
        if (what == COPYFILE_RECURSE_DIR) {
            /* "none of the filesystem objects contained within the directory have been copied yet" */
            EXPECT(!backup->is_new || is_empty(dst));
            backup->made++;
            if (backup->leave_empty != NULL && strstr(src, backup->leave_empty) != NULL)
                return COPYFILE_SKIP;
        } else if (what == COPYFILE_RECURSE_DIR_CLEANUP)
            backup->left++;
        else if (what == COPYFILE_RECURSE_FILE)
            backup->finished++;
        break;
    case COPYFILE_ERR:
        backup->failed++;
        backup->last_errno = errno;
        backup->failed_what = what;
        snprintf(backup->failed_name, sizeof(backup->failed_name), "%s", src);
        return backup->on_failure;
    case COPYFILE_PROGRESS:
        EXPECT(what == COPYFILE_COPY_DATA);
        EXPECT(copyfile_state_get(state, COPYFILE_STATE_COPIED, &backup->bytes) == 0);
        backup->reports++;
        return backup->on_progress;
    default:
        break;
    }
    return COPYFILE_CONTINUE;
}

static copyfile_state_t state_for(backup_t *backup)
{
    union {
        copyfile_callback_t function;
        const void *pointer;
    } callback;
    copyfile_state_t state = copyfile_state_alloc();
    EXPECT(state != NULL);
    memset(backup, 0, sizeof(*backup));
    callback.function = status;
    EXPECT(copyfile_state_set(state, COPYFILE_STATE_STATUS_CB, callback.pointer) == 0);
    EXPECT(copyfile_state_set(state, COPYFILE_STATE_STATUS_CTX, backup) == 0);
    return state;
}

static void save(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    EXPECT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static bool holds(const char *path, const char *text)
{
    char found[256];
    int fd = open(path, O_RDONLY);
    ssize_t bytes;
    if (fd < 0)
        return false;
    bytes = read(fd, found, sizeof(found));
    close(fd);
    return bytes == (ssize_t)strlen(text) && memcmp(found, text, strlen(text)) == 0;
}

/* "If this has not been initialized yet, the value will be -2", and NULL for names. */
static void new_state(void)
{
    copyfile_state_t state = copyfile_state_alloc();
    const char *name = "";
    int fd = 0;
    EXPECT(copyfile_state_get(state, COPYFILE_STATE_SRC_FD, &fd) == 0 && fd == -2);
    EXPECT(copyfile_state_get(state, COPYFILE_STATE_DST_FD, &fd) == 0 && fd == -2);
    EXPECT(copyfile_state_get(state, COPYFILE_STATE_SRC_FILENAME, &name) == 0 && name == NULL);
    EXPECT(copyfile_state_get(state, COPYFILE_STATE_DST_FILENAME, &name) == 0 && name == NULL);
    EXPECT(copyfile(NULL, NULL, state, COPYFILE_DATA) == -1 && errno == EINVAL);
    EXPECT(copyfile_state_get(state, COPYFILE_STATE_XATTRNAME, &name) == -1);
    EXPECT(copyfile_state_free(state) == 0);
}

/* Names and descriptors of the state take the place of arguments. */
static void by_state(void)
{
    copyfile_state_t state = copyfile_state_alloc();
    int src, dst;
    save("note", "a note");
    EXPECT(copyfile_state_set(state, COPYFILE_STATE_SRC_FILENAME, "note") == 0);
    EXPECT(copyfile_state_set(state, COPYFILE_STATE_DST_FILENAME, "note by name") == 0);
    EXPECT(copyfile(NULL, NULL, state, COPYFILE_ALL) == 0 && holds("note by name", "a note"));
    EXPECT(copyfile_state_free(state) == 0);
    state = copyfile_state_alloc();
    src = open("note", O_RDONLY);
    dst = open("note by descriptor", O_RDWR | O_CREAT, 0600);
    EXPECT(copyfile_state_set(state, COPYFILE_STATE_SRC_FD, &src) == 0);
    EXPECT(copyfile_state_set(state, COPYFILE_STATE_DST_FD, &dst) == 0);
    EXPECT(copyfile(NULL, NULL, state, COPYFILE_DATA) == 0);
    EXPECT(holds("note by descriptor", "a note"));
    EXPECT(close(src) == 0 && close(dst) == 0 && copyfile_state_free(state) == 0);
}

/* The data callback, of names and of descriptors, and each of its answers. */
static void progress(void)
{
    backup_t backup;
    copyfile_state_t state = state_for(&backup);
    int src, dst;
    EXPECT(copyfile("note", "note again", state, COPYFILE_DATA) == 0);
    EXPECT(backup.reports > 0 && backup.bytes == 6 && backup.failed == 0);
    backup.reports = 0;
    src = open("note", O_RDONLY);
    dst = open("note by descriptor", O_RDWR | O_TRUNC);
    EXPECT(fcopyfile(src, dst, state, COPYFILE_DATA) == 0 && backup.reports > 0 && backup.bytes == 6);
    EXPECT(holds("note by descriptor", "a note"));
    backup.on_progress = COPYFILE_SKIP;
    EXPECT(fcopyfile(src, dst, state, COPYFILE_DATA) == 0);
    /* A file of which not all was copied is not removed. */
    EXPECT(copyfile("note", "note again", state, COPYFILE_DATA | COPYFILE_MOVE) == 0);
    EXPECT(holds("note", "a note"));
    backup.on_progress = COPYFILE_QUIT;
    EXPECT(fcopyfile(src, dst, state, COPYFILE_DATA) == -1 && errno == ECANCELED);
    EXPECT(copyfile("note", "note again", state, COPYFILE_DATA) == -1 && errno == ECANCELED);
    EXPECT(close(src) == 0 && close(dst) == 0 && copyfile_state_free(state) == 0);
}

/* Whatever a callback for progress returns, a file that cannot be copied is an error. */
static void failures(void)
{
    backup_t backup;
    copyfile_state_t state = state_for(&backup);
    int full = open("/dev/full", O_WRONLY), src = open("note", O_RDONLY);
    EXPECT(copyfile("note", "none/note", state, COPYFILE_ALL) == -1 && errno == ENOENT);
    EXPECT(copyfile("none", "note", state, COPYFILE_ALL) == -1 && errno == ENOENT);
    EXPECT(backup.failed == 0 && holds("note", "a note"));
    EXPECT(full >= 0 && src >= 0);
    backup.on_failure = COPYFILE_CONTINUE;
    EXPECT(fcopyfile(src, full, state, COPYFILE_DATA) == -1 && errno == ENOSPC);
    EXPECT(backup.failed > 0 && backup.last_errno == ENOSPC);
    backup.on_failure = COPYFILE_SKIP;
    EXPECT(fcopyfile(src, full, state, COPYFILE_DATA) == 0);
    backup.on_failure = COPYFILE_QUIT;
    EXPECT(fcopyfile(src, full, state, COPYFILE_DATA) == -1 && errno == ENOSPC);
    EXPECT(mkfifo("fifo", 0600) == 0);
    EXPECT(copyfile("fifo", "no fifo", state, COPYFILE_ALL) == -1 && errno == ENOTSUP);
    EXPECT(!is_there("no fifo") && unlink("fifo") == 0);
    EXPECT(copyfile("/dev/null", "no device", NULL, COPYFILE_DATA) == -1 && errno == ENOTSUP);
    EXPECT(close(full) == 0 && close(src) == 0 && copyfile_state_free(state) == 0);
}

static void folders(void)
{
    backup_t backup;
    copyfile_state_t state = state_for(&backup);
    bool stays = true;
    EXPECT(mkdir("work", 0755) == 0 && mkdir("work/old", 0755) == 0 && mkdir("work/old/er", 0700) == 0);
    save("work/one", "1");
    save("work/old/two", "22");
    save("work/old/er/three", "333");
    EXPECT(symlink("one", "work/link") == 0);
    EXPECT(copyfile_state_set(state, COPYFILE_STATE_FORBID_CROSS_MOUNT, &stays) == 0);
    backup.is_new = true;
    EXPECT(copyfile("work", "backup", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    EXPECT(holds("backup/one", "1") && holds("backup/old/two", "22"));
    EXPECT(holds("backup/old/er/three", "333"));
    EXPECT(backup.entered == 3 && backup.left == 3 && backup.started == 4 && backup.finished == 4);
    EXPECT(backup.made == 3 && backup.filled == 3 && backup.failed == 0);
    backup.is_new = false;
    /* "when entering a directory, returning COPYFILE_SKIP ... will prevent the contents ... from being copied" */
    backup.leave_empty = "er";
    EXPECT(copyfile("work", "shallow", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    EXPECT(holds("shallow/old/two", "22") && is_empty("shallow/old/er"));
    backup.leave_empty = NULL;
    /* A folder that is skipped is not entered. */
    backup.leave_out = "er";
    EXPECT(copyfile("work", "part", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    EXPECT(holds("part/old/two", "22") && !is_there("part/old/er"));
    backup.leave_out = NULL;
    /* COPYFILE_QUIT: what was created remains, and errno is not changed. */
    backup.stop_at = "er";
    errno = 0;
    EXPECT(copyfile("work", "stopped", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == -1 && errno == 0);
    EXPECT(is_there("stopped") && !is_there("stopped/old/er/three"));
    backup.stop_at = NULL;
    /* An entry that fails, and whether the rest is copied. */
    EXPECT(mkdir("taken", 0755) == 0 && mkdir("taken/one", 0755) == 0);
    EXPECT(copyfile("work/", "taken", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    EXPECT(backup.failed == 1 && backup.last_errno == EISDIR && holds("taken/old/er/three", "333"));
    EXPECT(backup.failed_what == COPYFILE_RECURSE_FILE);
    EXPECT(mkdir("no folder", 0755) == 0);
    save("no folder/old", "a file");
    EXPECT(copyfile("work/", "no folder", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == 0);
    EXPECT(backup.failed == 2 && backup.failed_what == COPYFILE_RECURSE_DIR && holds("no folder/one", "1"));
    backup.on_failure = COPYFILE_QUIT;
    EXPECT(copyfile("work/", "taken", state, COPYFILE_ALL | COPYFILE_RECURSIVE) == -1 && errno == EISDIR);
    EXPECT(copyfile("work", "backup", state, COPYFILE_ALL | COPYFILE_RECURSIVE | COPYFILE_EXCL) == 0);
    EXPECT(holds("backup/work/one", "1"));
    EXPECT(copyfile("work", "backup", state, COPYFILE_ALL | COPYFILE_RECURSIVE | COPYFILE_EXCL) == -1);
    EXPECT(errno == EEXIST);
    EXPECT(copyfile_state_free(state) == 0);
}

static void flags(void)
{
    copyfile_state_t state = copyfile_state_alloc();
    struct stat sb;
    bool cloned = true;
    off_t copied = -1;
    ino_t before;
    EXPECT(copyfile("note", "kept", NULL, COPYFILE_DATA | COPYFILE_EXCL) == 0);
    EXPECT(copyfile("note", "kept", NULL, COPYFILE_DATA | COPYFILE_EXCL) == -1 && errno == EEXIST);
    EXPECT(stat("kept", &sb) == 0);
    before = sb.st_ino;
    EXPECT(link("kept", "second name") == 0);
    EXPECT(copyfile("note", "kept", NULL, COPYFILE_ALL | COPYFILE_UNLINK) == 0);
    EXPECT(stat("kept", &sb) == 0 && sb.st_ino != before && stat("second name", &sb) == 0);
    EXPECT(sb.st_ino == before);
    EXPECT(copyfile("note", "clone", state, COPYFILE_CLONE) == 0 && holds("clone", "a note"));
    EXPECT(copyfile_state_get(state, COPYFILE_STATE_WAS_CLONED, &cloned) == 0);
    EXPECT(copyfile_state_get(state, COPYFILE_STATE_COPIED, &copied) == 0);
    EXPECT(copied == (cloned ? 0 : 6));
    if (copyfile("note", "forced", NULL, COPYFILE_CLONE_FORCE) == 0)
        EXPECT(cloned && holds("forced", "a note"));
    else
        EXPECT(!cloned && (errno == ENOTSUP || errno == EOPNOTSUPP) && !is_there("forced"));
    /* "if the from file had extended attributes but no ACLs, the return value would be COPYFILE_XATTR". */
    EXPECT(copyfile("note", NULL, NULL, COPYFILE_CHECK | COPYFILE_METADATA) == 0);
    EXPECT(symlink("note", "to note") == 0);
    EXPECT(copyfile("to note", "link itself", NULL, COPYFILE_ALL | COPYFILE_NOFOLLOW_SRC) == 0);
    EXPECT(lstat("link itself", &sb) == 0 && S_ISLNK(sb.st_mode));
    EXPECT(copyfile("to note", "moved", NULL, COPYFILE_ALL | COPYFILE_MOVE) == 0 && !is_there("to note"));
    EXPECT(holds("moved", "a note") && holds("note", "a note"));
    EXPECT(copyfile("note", "quarantined", NULL, COPYFILE_RUN_IN_PLACE) == -1 && errno == ENOTSUP);
    EXPECT(copyfile_state_free(state) == 0);
}

int main(int argc, char *argv[])
{
    EXPECT(argc == 2 && chdir(argv[1]) == 0);
    new_state();
    by_state();
    progress();
    failures();
    folders();
    flags();
    puts("passed");
    return EXIT_SUCCESS;
}
