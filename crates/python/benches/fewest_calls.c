/* Copies a directory of directories of files by two threads with the fewest calls that keep data, modes and
 * times, and checks nothing: the least that the kernel takes for what copytree does.
 *
 *     cc -O2 -pthread fewest_calls.c -o /tmp/fewest_calls && time /tmp/fewest_calls SRC DST
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { DIRECTORIES_MAX = 10000, BUFFER_BYTES = 1 << 16 };

static char *names[DIRECTORIES_MAX];
static int count, next, from, to;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void copy_file(int src_dir, int dst_dir, const char *name, char *buffer) {
    char xattrs[512];
    struct stat found;
    int src = openat(src_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), dst;
    ssize_t bytes;
    if (src < 0 || fstat(src, &found) != 0)
        fail(name);
    dst = openat(dst_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, found.st_mode & 0777);
    bytes = read(src, buffer, BUFFER_BYTES);
    if (dst < 0 || bytes != found.st_size || write(dst, buffer, (size_t)bytes) != bytes)
        fail(name);
    if (flistxattr(src, xattrs, sizeof xattrs) > 0)
        fail("extended attributes are not copied here");
    if (futimens(dst, (struct timespec[]){found.st_atim, found.st_mtim}) != 0)
        fail(name);
    if (close(src) != 0 || close(dst) != 0)
        fail(name);
}

static void *work(void *unused) {
    char *buffer = malloc(BUFFER_BYTES);
    int at;
    (void)unused;
    while ((at = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < count) {
        struct stat found;
        struct dirent *entry;
        int src = openat(from, names[at], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int dst = mkdirat(to, names[at], 0700) == 0 ? openat(to, names[at], O_RDONLY | O_DIRECTORY) : -1;
        DIR *listing = fdopendir(src);
        if (!buffer || dst < 0 || !listing || fstat(src, &found) != 0)
            fail(names[at]);
        while ((entry = readdir(listing)))
            if (entry->d_name[0] != '.')
                copy_file(src, dst, entry->d_name, buffer);
        if (fchmod(dst, found.st_mode & 0777) != 0
            || futimens(dst, (struct timespec[]){found.st_atim, found.st_mtim}) != 0)
            fail(names[at]);
        closedir(listing);
        close(dst);
    }
    free(buffer);
    return NULL;
}

int main(int arguments, char **argument) {
    pthread_t threads[2];
    struct dirent *entry;
    DIR *listing;
    if (arguments != 3 || mkdir(argument[2], 0755) != 0)
        fail("fewest_calls SRC DST");
    from = open(argument[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    to = open(argument[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    listing = opendir(argument[1]);
    if (from < 0 || to < 0 || !listing)
        fail(argument[1]);
    while ((entry = readdir(listing)) && count < DIRECTORIES_MAX)
        if (entry->d_name[0] != '.')
            names[count++] = strdup(entry->d_name);
    for (int thread = 0; thread < 2; thread++)
        if (pthread_create(&threads[thread], NULL, work, NULL) != 0)
            fail("pthread_create");
    for (int thread = 0; thread < 2; thread++)
        pthread_join(threads[thread], NULL);
    return 0;
}
