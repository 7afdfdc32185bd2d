/*
 * The interface of macOS's copyfile(3) on Linux, by libhaulage. copyfile(3) describes it.
 */
#ifndef HAULAGE_COPYFILE_H
#define HAULAGE_COPYFILE_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CopyfileState;
typedef struct CopyfileState *copyfile_state_t;
typedef uint32_t copyfile_flags_t;

/* What is told to the callback, the stage of it, the state, source, destination and context. */
typedef int (*copyfile_callback_t)(int, int, copyfile_state_t, const char *, const char *, void *);

/* What is copied. */
#define COPYFILE_ACL (1 << 0)
#define COPYFILE_STAT (1 << 1)
#define COPYFILE_XATTR (1 << 2)
#define COPYFILE_DATA (1 << 3)
#define COPYFILE_SECURITY (COPYFILE_STAT | COPYFILE_ACL)
#define COPYFILE_METADATA (COPYFILE_SECURITY | COPYFILE_XATTR)
#define COPYFILE_ALL (COPYFILE_METADATA | COPYFILE_DATA)

/* How it is copied. */
#define COPYFILE_RECURSIVE (1 << 15)
#define COPYFILE_CHECK (1 << 16)
#define COPYFILE_EXCL (1 << 17)
#define COPYFILE_NOFOLLOW_SRC (1 << 18)
#define COPYFILE_NOFOLLOW_DST (1 << 19)
#define COPYFILE_NOFOLLOW (COPYFILE_NOFOLLOW_SRC | COPYFILE_NOFOLLOW_DST)
#define COPYFILE_MOVE (1 << 20)
#define COPYFILE_UNLINK (1 << 21)
#define COPYFILE_CLONE (1 << 24)
#define COPYFILE_CLONE_FORCE (1 << 25)
#define COPYFILE_DATA_SPARSE (1 << 27)

/* These have no meaning on Linux: ENOTSUP. */
#define COPYFILE_PACK (1 << 22)
#define COPYFILE_UNPACK (1 << 23)
#define COPYFILE_RUN_IN_PLACE (1 << 26)
#define COPYFILE_PRESERVE_DST_TRACKED (1 << 28)

/* The values of a state, with the type of the variable for copyfile_state_get. */
#define COPYFILE_STATE_SRC_FD 1       /* int */
#define COPYFILE_STATE_SRC_FILENAME 2 /* const char * */
#define COPYFILE_STATE_DST_FD 3       /* int */
#define COPYFILE_STATE_DST_FILENAME 4 /* const char * */
#define COPYFILE_STATE_STATUS_CB 6    /* copyfile_callback_t */
#define COPYFILE_STATE_STATUS_CTX 7   /* void * */
#define COPYFILE_STATE_COPIED 8       /* off_t of 64 bits */
#define COPYFILE_STATE_WAS_CLONED 10  /* bool */
#define COPYFILE_STATE_FORBID_CROSS_MOUNT 14 /* bool */

/* These have no meaning on Linux: ENOTSUP. */
#define COPYFILE_STATE_QUARANTINE 5
#define COPYFILE_STATE_XATTRNAME 9
#define COPYFILE_STATE_SRC_BSIZE 11
#define COPYFILE_STATE_DST_BSIZE 12
#define COPYFILE_STATE_BSIZE 13
#define COPYFILE_STATE_NOCPROTECT 15
#define COPYFILE_STATE_PRESERVE_SUID 16
#define COPYFILE_STATE_RECURSIVE_SRC_FTSENT 17
#define COPYFILE_STATE_FORBID_DST_EXISTING_SYMLINKS 18

/* What a callback is told about. All extended attributes are copied at once, so that none is told about. */
#define COPYFILE_RECURSE_ERROR 0
#define COPYFILE_RECURSE_FILE 1
#define COPYFILE_RECURSE_DIR 2
#define COPYFILE_RECURSE_DIR_CLEANUP 3
#define COPYFILE_COPY_DATA 4
#define COPYFILE_COPY_XATTR 5

/* The stage of it. */
#define COPYFILE_START 1
#define COPYFILE_FINISH 2
#define COPYFILE_ERR 3
#define COPYFILE_PROGRESS 4

/* What a callback returns. */
#define COPYFILE_CONTINUE 0
#define COPYFILE_SKIP 1
#define COPYFILE_QUIT 2

int copyfile(const char *from, const char *to, copyfile_state_t state, copyfile_flags_t flags);
int fcopyfile(int from, int to, copyfile_state_t state, copyfile_flags_t flags);

copyfile_state_t copyfile_state_alloc(void);
int copyfile_state_free(copyfile_state_t state);
int copyfile_state_get(copyfile_state_t state, uint32_t flag, void *value);
int copyfile_state_set(copyfile_state_t state, uint32_t flag, const void *value);

#ifdef __cplusplus
}
#endif

#endif /* HAULAGE_COPYFILE_H */
