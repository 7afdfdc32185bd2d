/*
 * libhaulage copies files and trees on Linux, as haulage(1) does. haulage(3) describes it.
 *
 * Functions that return int return 0, or -1 with errno set. Every function may be called from any
 * thread. A haulage_state serves one copy at a time: another one on it fails with EBUSY.
 */

#ifndef HAULAGE_H
#define HAULAGE_H

#include <stdint.h>

/*
 What a callback returns: go on.
 */
#define HAULAGE_CONTINUE 0

/*
 Go on; the error does not make the copy fail.
 */
#define HAULAGE_SKIP 1

/*
 Stop. The copy fails with ECANCELED, if with nothing else.
 */
#define HAULAGE_QUIT 2

/*
 Symbolic links as links, hard links as links, and every attribute, as cp -a.
 */
#define HAULAGE_ARCHIVE (1 << 0)

/*
 Follow every symbolic link of the source.
 */
#define HAULAGE_FOLLOW (1 << 1)

/*
 Read each copy back and compare it with its source.
 */
#define HAULAGE_VERIFY (1 << 2)

/*
 A name stands for the old file or for the complete new one at every moment.
 */
#define HAULAGE_ATOMIC (1 << 3)

/*
 Sync every copy and every name before the call returns.
 */
#define HAULAGE_DURABLE (1 << 4)

/*
 Continue a copy of the same names that was killed. Implies HAULAGE_ATOMIC, and keeps times.
 */
#define HAULAGE_RESUME (1 << 5)

/*
 Leave the page cache as it was.
 */
#define HAULAGE_NO_CACHE (1 << 6)

/*
 Do not enter other file systems.
 */
#define HAULAGE_ONE_FILE_SYSTEM (1 << 7)

/*
 Change nothing, and report what would fail.
 */
#define HAULAGE_DRY_RUN (1 << 8)

/*
 Fail with EEXIST for an existing file.
 */
#define HAULAGE_EXCL (1 << 9)

/*
 Leave an existing file as it is, without an error.
 */
#define HAULAGE_KEEP_EXISTING (1 << 10)

/*
 Remove an existing file before its copy is created.
 */
#define HAULAGE_REMOVE_DESTINATION (1 << 11)

/*
 Share blocks, or fail.
 */
#define HAULAGE_CLONE_ALWAYS (1 << 12)

/*
 Do not share blocks.
 */
#define HAULAGE_CLONE_NEVER (1 << 13)

/*
 Count how much there is to copy, on a thread of its own, for the progress callback.
 */
#define HAULAGE_COUNT_FIRST (1 << 14)

/*
 Allow engines that handle SIGBUS for the whole process. Another SIGBUS is passed to the handler
 that was there before.
 */
#define HAULAGE_ALLOW_SIGBUS_HANDLER (1 << 15)

/*
 For haulage_set_number: threads that copy; 0 for as many as help.
 */
#define HAULAGE_JOBS 1

/*
 Bytes of data a second, at most; 0 for no limit.
 */
#define HAULAGE_LIMIT_RATE 2

/*
 Calls of the progress callback a second, at most; 0 for ten.
 */
#define HAULAGE_PROGRESS_PER_SECOND 3

/*
 For haulage_set_text: the variant of an engine, such as "splice:1M"; "" for the fastest.
 */
#define HAULAGE_ENGINE 1

/*
 The file of a profile; "" for none, which is the default.
 */
#define HAULAGE_PROFILE 2

/*
 One more pattern of gitignore(5): what it matches in a tree is not copied. The first pattern that
 matches decides.
 */
#define HAULAGE_EXCLUDE 3

/*
 One more pattern: what it matches is copied.
 */
#define HAULAGE_INCLUDE 4

/*
 One more file of patterns.
 */
#define HAULAGE_IGNORE_FILE 5

/*
 For haulage_count, of the last copy of a tree: regular files that were copied.
 */
#define HAULAGE_FILES 1

/*
 Directories that were copied.
 */
#define HAULAGE_DIRECTORIES 2

/*
 Symbolic links that were copied.
 */
#define HAULAGE_SYMLINKS 3

/*
 Fifos, sockets and devices that were copied.
 */
#define HAULAGE_SPECIAL 4

/*
 Entries that were made hard links.
 */
#define HAULAGE_LINKED 5

/*
 Entries whose destination was left as it was.
 */
#define HAULAGE_SKIPPED 6

/*
 Entries that failed.
 */
#define HAULAGE_FAILED 7

/*
 Bytes of data that were moved or shared, of a file too.
 */
#define HAULAGE_DATA_BYTES 8

/*
 Those of them that are shared.
 */
#define HAULAGE_SHARED_BYTES 9

/*
 Bytes of holes.
 */
#define HAULAGE_HOLE_BYTES 10

/*
 Errors, of which an entry may have two.
 */
#define HAULAGE_ERRORS 11

/*
 Nanoseconds that it took.
 */
#define HAULAGE_ELAPSED_NS 12

/*
 Bytes that are not on the medium now, at most: the kernel counts dirty pages of all programs together.
 */
#define HAULAGE_UNWRITTEN_BYTES 13

/*
 Options, callbacks and the result of one copy at a time.
 */
typedef struct haulage_state haulage_state;

/*
 The progress of a copy.
 */
typedef struct {
  /*
   Finished entries, copied or not, without directories.
   */
  uint64_t entries;
  /*
   Bytes of regular files and streams that were copied, holes included.
   */
  uint64_t bytes;
  /*
   Bytes of regular files that are not copied.
   */
  uint64_t skipped_bytes;
  /*
   How many entries there are, if total_known is not 0.
   */
  uint64_t total_entries;
  /*
   How many bytes there are, if total_known is not 0.
   */
  uint64_t total_bytes;
  /*
   Everything is counted. Only with HAULAGE_COUNT_FIRST, and without patterns.
   */
  int total_known;
  /*
   Nanoseconds since the start.
   */
  uint64_t elapsed_ns;
  /*
   Bytes that were copied and are not on the medium yet, at most.
   */
  uint64_t unwritten_bytes;
} haulage_progress;

/*
 Is told the progress, and returns HAULAGE_CONTINUE or HAULAGE_QUIT. It is called by the thread that
 copies a tree or a file, and may not use longjmp(3) or throw.
 */
typedef int (*haulage_progress_fn)(const haulage_progress *progress, void *context);

/*
 An error. It and its strings are valid during the call.
 */
typedef struct {
  /*
   The errno.
   */
  int errnum;
  /*
   The file; NULL if there is none.
   */
  const char *path;
  /*
   The whole error in one line.
   */
  const char *text;
} haulage_error;

/*
 Is told an error when it occurs, and returns what to do.
 */
typedef int (*haulage_error_fn)(const haulage_error *error, void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A new state with no options; NULL after an error inside the library.
 */
haulage_state *haulage_state_new(void);

/*
 Frees a state. NULL is ignored. A copy that uses it, as in a callback, goes on and frees it at its end.
 */
void haulage_state_free(haulage_state *state);

/*
 Sets the flags HAULAGE_ARCHIVE to HAULAGE_ALLOW_SIGBUS_HANDLER; flags that are missing are cleared.
 EINVAL for an unknown flag or for two that exclude each other.
 */
int haulage_set_flags(haulage_state *state, uint64_t flags);

/*
 Sets a number: HAULAGE_JOBS, HAULAGE_LIMIT_RATE or HAULAGE_PROGRESS_PER_SECOND.
 */
int haulage_set_number(haulage_state *state, int option, uint64_t value);

/*
 Sets or adds a text: HAULAGE_ENGINE to HAULAGE_IGNORE_FILE. EINVAL for an engine that does not
 exist. A pattern that cannot be used is an error of the copy.
 */
int haulage_set_text(haulage_state *state, int option, const char *value);

/*
 Calls `callback` with the progress of each copy, and once at its end. NULL for no callback.
 */
int haulage_on_progress(haulage_state *state, haulage_progress_fn callback, void *context);

/*
 Calls `callback` with each error. NULL for no callback.
 */
int haulage_on_error(haulage_state *state, haulage_error_fn callback, void *context);

/*
 Makes the copy that uses this state stop soon; it fails with ECANCELED. A copy that starts later
 stops too, until haulage_uncancel is called. May be called from any thread and from a signal
 handler.
 */
void haulage_cancel(const haulage_state *state);

/*
 Lets copies start again with this state.
 */
void haulage_uncancel(const haulage_state *state);

/*
 Copies the file `src` to the name `dst`, as cp(1) does: the data, and the permissions less the
 umask of a new file; an existing file is replaced. EISDIR for a directory. `state` may be NULL.
 */
int haulage_copy_file(const char *src, const char *dst, haulage_state *state);

/*
 Copies what is open as `src` to what is open as `dst`. Between regular files the whole file is
 copied, whatever the offsets are, and replaces the contents of `dst`. Anything else is a stream,
 from where it is to its end; what a file `dst` has before its offset stays, and the rest is replaced.
 The descriptors stay open. EBADF also for a file with O_APPEND. `state` may be NULL.
 */
int haulage_copy_fds(int src,
                     int dst,
                     haulage_state *state);

/*
 Copies `src` to the name `dst`, a directory with its entries, as cp -r: symbolic links as links.
 A directory is merged into an existing directory `dst`. An entry that fails does not stop the
 others; errno is that of the first error. `state` may be NULL.
 */
int haulage_copy_tree(const char *src, const char *dst, haulage_state *state);

/*
 The errno of the last copy with this state; 0 if it succeeded.
 */
int haulage_last_errno(const haulage_state *state);

/*
 The file of the first error of the last copy; NULL if there is none. It is valid until the next copy
 with this state.
 */
const char *haulage_last_path(const haulage_state *state);

/*
 The first error of the last copy in one line; NULL if it succeeded. It is valid until the next copy
 with this state.
 */
const char *haulage_last_text(const haulage_state *state);

/*
 The name of the engine that moved or shared the most bytes of the last copy; NULL if there was no
 data. It is valid until the next copy with this state.
 */
const char *haulage_engine_used(const haulage_state *state);

/*
 A count of the last copy: HAULAGE_FILES to HAULAGE_UNWRITTEN_BYTES; 0 for an unknown one. Of the copy of
 a file without callbacks only HAULAGE_DATA_BYTES and HAULAGE_ERRORS are counted.
 */
uint64_t haulage_count(const haulage_state *state,
                       int what);

/*
 The version of the library, such as "0.1.0".
 */
const char *haulage_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAULAGE_H */
