//! C streams (FILE) over duplicated descriptors.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;

use rustix::io::Errno;

use super::buffer::Buffer;
use super::last_errno;

unsafe extern "C" {
    // stdio_ext(3), in glibc and musl. The libc crate does not declare them.
    fn __fpending(stream: *mut libc::FILE) -> usize;
    fn __fpurge(stream: *mut libc::FILE);
}

/// `_IOFBF` of stdio.h: full buffering.
const IOFBF: c_int = 0;

/// An open C stream. Its descriptor is a duplicate, so closing it leaves the original open. Both
/// share one cursor.
pub struct Stream {
    file: NonNull<libc::FILE>,
    /// The buffer passed to setvbuf, which must outlive the stream.
    _buffer: Option<Buffer>,
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Bytes that the stream took or returned.
    pub bytes: usize,
    /// How it ended.
    pub end: End,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All requested bytes were transferred.
    Full,
    /// The stream's `read` returned 0.
    Eof,
    /// A call failed.
    Error(Errno),
}

impl Stream {
    /// `FILE *fdopen(int fd, const char *mode)` for a duplicate of `fd`, for reading.
    ///
    /// # Errors
    /// Those of dup(2), fdopen(3) and setvbuf(3).
    pub fn reader(fd: BorrowedFd<'_>, buffer: Option<Buffer>) -> rustix::io::Result<Stream> {
        Stream::open(fd, c"r", buffer)
    }

    /// `FILE *fdopen(int fd, const char *mode)` for a duplicate of `fd`, for writing. fdopen(3)
    /// does not truncate.
    ///
    /// # Errors
    /// Those of dup(2), fdopen(3) and setvbuf(3).
    pub fn writer(fd: BorrowedFd<'_>, buffer: Option<Buffer>) -> rustix::io::Result<Stream> {
        Stream::open(fd, c"w", buffer)
    }

    fn open(fd: BorrowedFd<'_>, mode: &CStr, buffer: Option<Buffer>) -> rustix::io::Result<Stream> {
        let duplicate: OwnedFd = rustix::io::fcntl_dupfd_cloexec(fd, 0)?;
        let raw = duplicate.into_raw_fd();
        // SAFETY: `raw` is an open descriptor that this stream now owns, and `mode` is a C string.
        let file = unsafe { libc::fdopen(raw, mode.as_ptr()) };
        let Some(file) = NonNull::new(file) else {
            let errno = last_errno();
            // SAFETY: fdopen failed, so the descriptor still belongs to this function, which closes
            // it once.
            unsafe { libc::close(raw) };
            return Err(errno);
        };
        let mut stream = Stream { file, _buffer: buffer };
        if let Some(buffer) = &mut stream._buffer {
            let memory = buffer.as_mut_slice();
            let (start, len) = (memory.as_mut_ptr().cast(), memory.len());
            // SAFETY: nothing was read or written yet. The buffer lives in the same value as the
            // stream, whose `drop` closes the stream before the buffer's field is dropped.
            let failed = unsafe { libc::setvbuf(file.as_ptr(), start, IOFBF, len) } != 0;
            if failed {
                return Err(Errno::INVAL);
            }
        }
        Ok(stream)
    }

    /// `size_t fread(void *ptr, size_t size, size_t n, FILE *stream)` of single bytes; see
    /// fread(3).
    pub fn read(&mut self, bytes: &mut [u8]) -> Transfer {
        let start: *mut c_void = bytes.as_mut_ptr().cast();
        // SAFETY: the stream is open, and `start` has room for `bytes.len()` bytes.
        let got = unsafe { libc::fread(start, 1, bytes.len(), self.file.as_ptr()) };
        self.transfer(got, bytes.len())
    }

    /// `size_t fwrite(const void *ptr, size_t size, size_t n, FILE *stream)` of single bytes.
    /// Accepted bytes may still be in the stream's buffer.
    pub fn write(&mut self, bytes: &[u8]) -> Transfer {
        let start: *const c_void = bytes.as_ptr().cast();
        // SAFETY: the stream is open, and `start` holds `bytes.len()` bytes.
        let taken = unsafe { libc::fwrite(start, 1, bytes.len(), self.file.as_ptr()) };
        self.transfer(taken, bytes.len())
    }

    /// `int fflush(FILE *stream)`: writes the buffer out.
    ///
    /// # Errors
    /// Those of write(2). The buffer is empty then, also after EINTR: a second flush would succeed and write nothing.
    pub fn flush(&mut self) -> rustix::io::Result<()> {
        // SAFETY: the stream is open.
        let result = unsafe { libc::fflush(self.file.as_ptr()) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    }

    /// Bytes written to the stream that have not reached the descriptor.
    pub fn pending(&mut self) -> usize {
        // SAFETY: the stream is open.
        unsafe { __fpending(self.file.as_ptr()) }
    }

    /// Discards the buffer, so that closing the stream does not write it again.
    pub fn purge(&mut self) {
        // SAFETY: the stream is open.
        unsafe { __fpurge(self.file.as_ptr()) };
    }

    fn transfer(&mut self, bytes: usize, wanted: usize) -> Transfer {
        if bytes == wanted {
            return Transfer { bytes, end: End::Full };
        }
        // Read before any other call can change it.
        let errno = last_errno_or_none();
        // SAFETY: the stream is open.
        let failed = unsafe { libc::ferror(self.file.as_ptr()) } != 0;
        self.clear_error();
        let end = match errno {
            Some(errno) if failed => End::Error(errno),
            _ if failed => End::Error(Errno::IO),
            _ => End::Eof,
        };
        Transfer { bytes, end }
    }

    fn clear_error(&mut self) {
        // SAFETY: the stream is open.
        unsafe { libc::clearerr(self.file.as_ptr()) };
    }
}

fn last_errno_or_none() -> Option<Errno> {
    Errno::from_io_error(&std::io::Error::last_os_error())
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and closed once. The engine flushes or purges a writer first,
        // so nothing is written here. Closing a duplicate loses no error of a file that stays open.
        unsafe { libc::fclose(self.file.as_ptr()) };
    }
}
