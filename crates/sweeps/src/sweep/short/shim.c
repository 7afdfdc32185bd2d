/* Makes the C library's calls that move bytes short, or interrupts them, in a program that is started with
 * LD_PRELOAD. No call reports more or fewer bytes than it has moved.
 *
 * HAULAGE_SHORT_COUNTS names a file with one 64-bit counter a kind of call, and one of the calls changed.
 * HAULAGE_SHORT_RULE is "KIND FIRST LAST HOW": calls FIRST to LAST of that kind (0: no last) move "one" byte,
 * "half" of the bytes or at most a "page", or fail with "eintr"; with "odd" every second of them fails. Calls
 * for less than two bytes are neither changed nor counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { READ, PREAD, WRITE, PWRITE, SPLICE, COPY_FILE_RANGE, SENDFILE, KINDS };

static const char *const NAMES[KINDS] = { "read",   "pread",           "write",   "pwrite",
                                          "splice", "copy_file_range", "sendfile" };

#define PAGE 4096

static long (*call)(long number, ...);
static _Atomic unsigned long *counts;
static enum kind chosen = KINDS;
static unsigned long first, last;
static char how[8];

__attribute__((constructor)) static void begin(void)
{
	call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	const char *file = getenv("HAULAGE_SHORT_COUNTS");
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
	if (fd >= 0) {
		void *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		counts = map == MAP_FAILED ? NULL : map;
		close(fd);
	}
	const char *rule = getenv("HAULAGE_SHORT_RULE");
	char name[24];
	if (rule && sscanf(rule, "%23s %lu %lu %7s", name, &first, &last, how) == 4)
		for (int kind = 0; kind < KINDS; kind++)
			if (!strcmp(name, NAMES[kind]))
				chosen = kind;
}

/* How many of `bytes` this call may move; -1 if it is interrupted, with errno. */
static ssize_t allowed(enum kind kind, size_t bytes)
{
	if (!counts || bytes < 2)
		return bytes;
	unsigned long number = atomic_fetch_add(&counts[kind], 1) + 1;
	if (kind != chosen || number < first || (last && number > last))
		return bytes;
	size_t most = bytes;
	if (!strcmp(how, "one"))
		most = 1;
	else if (!strcmp(how, "half"))
		most = bytes / 2;
	else if (!strcmp(how, "page"))
		most = bytes < PAGE ? bytes : PAGE;
	else if (!strcmp(how, "eintr") || (!strcmp(how, "odd") && number % 2))
		most = 0;
	if (most != bytes)
		atomic_fetch_add(&counts[KINDS], 1);
	if (most == 0) {
		errno = EINTR;
		return -1;
	}
	return most;
}

/* Makes the call. The loader may make some before `begin`. */
static long forward(long number, long a, long b, long c, long d, long e, long f)
{
	if (!call)
		call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return call(number, a, b, c, d, e, f);
}

/* A vector that is too long becomes its first buffers, the last of them short. */
static long vectored(enum kind kind, long number, int fd, const struct iovec *iov, int len, off_t at, int flags)
{
	size_t bytes = 0;
	for (int i = 0; i < len; i++)
		bytes += iov[i].iov_len;
	ssize_t most = allowed(kind, bytes);
	if (most < 0)
		return -1;
	/* The position is in two registers, of which 64-bit kernels use the first. */
	if ((size_t)most == bytes || len < 1 || len > 64)
		return forward(number, fd, (long)iov, len, at, 0, flags);
	struct iovec cut[64];
	int used = 0;
	for (size_t left = most; left > 0 && used < len; used++) {
		cut[used] = iov[used];
		if (cut[used].iov_len > left)
			cut[used].iov_len = left;
		left -= cut[used].iov_len;
	}
	return forward(number, fd, (long)cut, used, at, 0, flags);
}

#define SHORTENED(kind, bytes) \
	ssize_t most = allowed(kind, bytes); \
	if (most < 0) \
		return -1

ssize_t read(int fd, void *buffer, size_t bytes)
{
	SHORTENED(READ, bytes);
	return forward(SYS_read, fd, (long)buffer, most, 0, 0, 0);
}

ssize_t write(int fd, const void *buffer, size_t bytes)
{
	SHORTENED(WRITE, bytes);
	return forward(SYS_write, fd, (long)buffer, most, 0, 0, 0);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off_t at)
{
	SHORTENED(PREAD, bytes);
	return forward(SYS_pread64, fd, (long)buffer, most, at, 0, 0);
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t at)
{
	return pread64(fd, buffer, bytes, at);
}

ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off_t at)
{
	SHORTENED(PWRITE, bytes);
	return forward(SYS_pwrite64, fd, (long)buffer, most, at, 0, 0);
}

ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t at)
{
	return pwrite64(fd, buffer, bytes, at);
}

ssize_t readv(int fd, const struct iovec *iov, int len)
{
	return vectored(READ, SYS_readv, fd, iov, len, 0, 0);
}

ssize_t writev(int fd, const struct iovec *iov, int len)
{
	return vectored(WRITE, SYS_writev, fd, iov, len, 0, 0);
}

#define POSITIONED(name, kind, number) \
	ssize_t name(int fd, const struct iovec *iov, int len, off_t at) \
	{ \
		return vectored(kind, number, fd, iov, len, at, 0); \
	}
#define FLAGGED(name, kind, number) \
	ssize_t name(int fd, const struct iovec *iov, int len, off_t at, int flags) \
	{ \
		return vectored(kind, number, fd, iov, len, at, flags); \
	}
POSITIONED(preadv, PREAD, SYS_preadv)
POSITIONED(preadv64, PREAD, SYS_preadv)
POSITIONED(pwritev, PWRITE, SYS_pwritev)
POSITIONED(pwritev64, PWRITE, SYS_pwritev)
FLAGGED(preadv2, PREAD, SYS_preadv2)
FLAGGED(preadv64v2, PREAD, SYS_preadv2)
FLAGGED(pwritev2, PWRITE, SYS_pwritev2)
FLAGGED(pwritev64v2, PWRITE, SYS_pwritev2)

ssize_t splice(int in, off_t *in_at, int out, off_t *out_at, size_t bytes, unsigned int flags)
{
	SHORTENED(SPLICE, bytes);
	return forward(SYS_splice, in, (long)in_at, out, (long)out_at, most, flags);
}

ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t bytes, unsigned int flags)
{
	SHORTENED(COPY_FILE_RANGE, bytes);
	return forward(SYS_copy_file_range, in, (long)in_at, out, (long)out_at, most, flags);
}

ssize_t sendfile64(int out, int in, off_t *at, size_t bytes)
{
	SHORTENED(SENDFILE, bytes);
	return forward(SYS_sendfile, out, in, (long)at, most, 0, 0);
}

ssize_t sendfile(int out, int in, off_t *at, size_t bytes)
{
	return sendfile64(out, in, at, bytes);
}

/* Calls that the C library of the build has no function for. */
long syscall(long number, ...)
{
	va_list list;
	va_start(list, number);
	long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
	long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
	va_end(list);
	switch (number) {
	case SYS_read: return read(a, (void *)b, c);
	case SYS_write: return write(a, (void *)b, c);
	case SYS_pread64: return pread64(a, (void *)b, c, d);
	case SYS_pwrite64: return pwrite64(a, (void *)b, c, d);
	case SYS_preadv2: return preadv2(a, (void *)b, c, d, f);
	case SYS_pwritev2: return pwritev2(a, (void *)b, c, d, f);
	case SYS_splice: return splice(a, (void *)b, c, (void *)d, e, f);
	case SYS_copy_file_range: return copy_file_range(a, (void *)b, c, (void *)d, e, f);
	case SYS_sendfile: return sendfile(a, b, (void *)c, d);
	default: return forward(number, a, b, c, d, e, f);
	}
}
