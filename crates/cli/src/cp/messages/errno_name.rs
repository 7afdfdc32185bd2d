//! The symbolic names of errors in errno(3), for programs.

use haulage::events::Errno;

/// The symbolic name of `errno`, such as `ENOSPC`; `None` for an error that no system call of a copy
/// returns.
pub(crate) fn errno_name(errno: Errno) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == errno).map(|(_, name)| *name)
}

/// The last two have other names in rustix.
macro_rules! names {
    ($($name:ident)*) => {
        &[
            $((Errno::$name, concat!("E", stringify!($name))),)*
            (Errno::ACCESS, "EACCES"),
            (Errno::TOOBIG, "E2BIG"),
        ]
    };
}

/// The errors of asm-generic/errno-base.h, and those of asm-generic/errno.h that file systems and the
/// system calls of a copy return. EAGAIN is EWOULDBLOCK and EOPNOTSUPP is ENOTSUP.
const NAMES: &[(Errno, &str)] = names! {
    PERM NOENT SRCH INTR IO NXIO NOEXEC BADF CHILD AGAIN NOMEM FAULT NOTBLK BUSY EXIST XDEV
    NODEV NOTDIR ISDIR INVAL NFILE MFILE NOTTY TXTBSY FBIG NOSPC SPIPE ROFS MLINK PIPE DOM RANGE
    DEADLK NAMETOOLONG NOLCK NOSYS NOTEMPTY LOOP NODATA TIME NOLINK COMM PROTO BADMSG OVERFLOW
    ILSEQ USERS MSGSIZE OPNOTSUPP NOBUFS NETDOWN NETUNREACH CONNABORTED CONNRESET NOTCONN SHUTDOWN
    TIMEDOUT CONNREFUSED HOSTDOWN HOSTUNREACH ALREADY INPROGRESS STALE UCLEAN REMOTEIO DQUOT
    NOMEDIUM MEDIUMTYPE CANCELED NOKEY KEYEXPIRED KEYREVOKED KEYREJECTED HWPOISON
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_names() {
        for (errno, name) in [
            (Errno::ACCESS, Some("EACCES")),
            (Errno::TOOBIG, Some("E2BIG")),
            (Errno::NOSPC, Some("ENOSPC")),
            (Errno::OPNOTSUPP, Some("EOPNOTSUPP")),
            (Errno::from_raw_os_error(4000), None),
        ] {
            assert_eq!(errno_name(errno), name);
        }
    }
}
