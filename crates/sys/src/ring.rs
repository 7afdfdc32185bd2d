//! An io_uring with buffers of its own, one for each slot. At most one operation is in flight in a
//! slot, so the kernel and the program never use the same buffer at the same time.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;

use super::buffer::Buffer;

/// The maximum memory of a ring's buffers in total, in bytes.
const BUFFERS_BYTES_MAX: usize = 1 << 30;

/// How many times in a row an operation may return EAGAIN or EINTR before another engine is tried.
/// A kernel that honours O_NONBLOCK for a file may return EAGAIN without end.
pub const PUT_OFF_MAX: u32 = 16;

/// How many times in a row the kernel may have no memory for the operations, with a pause each time: about
/// two seconds.
const SHORT_MAX: u32 = 2000;
const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// A ring that an engine keeps from one span to the next.
pub struct KeptRing {
    /// Taken out during use, and not put back with operations in flight. No such operation can then
    /// reach a later span, or descriptors that were closed meanwhile.
    ring: Option<Ring>,
    depth: usize,
    slot_bytes: usize,
}

impl KeptRing {
    /// Creates a ring of `depth` slots of `slot_bytes` each.
    ///
    /// # Errors
    /// `InvalidInput` for more than 1 GiB in total, and those of [`Ring::new`].
    pub fn new(depth: usize, slot_bytes: usize) -> io::Result<KeptRing> {
        if slot_bytes.checked_mul(depth).is_none_or(|bytes| bytes > BUFFERS_BYTES_MAX) {
            let message = "buffer times depth exceeds 1 GiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let ring = Some(Ring::new(depth, slot_bytes)?);
        Ok(KeptRing { ring, depth, slot_bytes })
    }

    /// The whole blocks of `block_bytes` that fit in a slot's buffer, in bytes.
    ///
    /// # Errors
    /// EINVAL if none fits.
    pub fn piece_bytes(&self, block_bytes: usize) -> Result<usize, Errno> {
        let bytes = self.slot_bytes - self.slot_bytes % block_bytes;
        if bytes > 0 { Ok(bytes) } else { Err(Errno::INVAL) }
    }

    /// Runs `copy` with the ring, or with a new one if the last one was left with operations in
    /// flight.
    ///
    /// # Errors
    /// Those of [`Ring::new`].
    pub fn with<T>(&mut self, copy: impl FnOnce(&mut Ring) -> T) -> Result<T, Errno> {
        let kept = self.ring.take();
        let mut ring = kept
            .map_or_else(|| Ring::new(self.depth, self.slot_bytes), Ok)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))?;
        let result = copy(&mut ring);
        self.ring = Some(ring).filter(|ring| !ring.busy());
        Ok(result)
    }
}

/// A ring with `depth` slots.
pub struct Ring {
    /// Declared before the buffers, so that it is closed before they are freed.
    uring: IoUring,
    /// All slots' buffers, one after another; `None` only during drop.
    buffers: Option<Buffer>,
    slot_bytes: usize,
    /// The distance from the start of one slot's buffer to that of the next.
    stride_bytes: usize,
    /// Whether the buffers are registered, so that the kernel has pinned them.
    registered: bool,
    in_flight: Vec<bool>,
}

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The slot of the operation.
    pub slot: usize,
    /// Bytes read or written.
    pub result: Result<usize, Errno>,
}

/// The direction of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file to the buffer.
    Read,
    /// From the buffer to the file.
    Write,
}

/// A part of a slot's buffer and its offset in the file.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The first byte in the slot's buffer.
    pub from: usize,
    /// Bytes.
    pub len: usize,
    /// The offset in the file, in bytes.
    pub file_at: u64,
}

impl Ring {
    /// Creates a ring of `depth` slots of `slot_bytes` each.
    ///
    /// # Errors
    /// ENOSYS or EPERM if the kernel has no io_uring or forbids it.
    pub fn new(depth: usize, slot_bytes: usize) -> io::Result<Ring> {
        let entries = u32::try_from(depth).map_err(|_| Errno::INVAL)?;
        // Each buffer starts on a page boundary, the widest alignment that direct I/O requires.
        let stride_bytes = slot_bytes.next_multiple_of(rustix::param::page_size());
        let mut buffers = Buffer::for_direct_io(depth * stride_bytes)?;
        // Where registration is allowed, it would fault the pages in anyway.
        buffers.touch();
        let uring = IoUring::new(entries)?;
        let memory = buffers.as_mut_slice();
        let slots: Vec<libc::iovec> = memory
            .chunks_exact_mut(stride_bytes)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot_bytes })
            .collect();
        // SAFETY: the buffers outlive the ring: their field comes after it, and `drop` leaks them
        // while the kernel may use them.
        let registered = unsafe { uring.submitter().register_buffers(&slots) };
        Ok(Ring {
            uring,
            buffers: Some(buffers),
            slot_bytes,
            stride_bytes,
            // RLIMIT_MEMLOCK limits the memory that an unprivileged user may pin. The ring works
            // without registration, but slower.
            registered: registered.is_ok(),
            in_flight: vec![false; depth],
        })
    }

    /// The number of slots.
    pub fn depth(&self) -> usize {
        self.in_flight.len()
    }

    /// Queues a read into, or a write from, a part of a slot's buffer. [`submit`](Ring::submit) or
    /// [`wait`](Ring::wait) passes it to the kernel. `fd` must stay open until it completes; the
    /// engine waits for it before it returns.
    ///
    /// # Panics
    /// If the slot is busy, or the part lies outside its buffer.
    pub fn push(&mut self, slot: usize, direction: Direction, fd: BorrowedFd<'_>, part: Part) {
        assert!(!self.in_flight[slot], "slot {slot} is busy");
        let end = part.from.checked_add(part.len);
        assert!(end.is_some_and(|end| end <= self.slot_bytes), "outside the slot");
        let start = slot * self.stride_bytes + part.from;
        let buffers = self.buffers.as_ref().expect("the ring is not being dropped");
        // No slice of all slots: the kernel may be writing to others.
        let address = buffers.address(start, part.len);
        let len = u32::try_from(part.len).expect("a slot is smaller than 4 GiB");
        let fd = types::Fd(fd.as_raw_fd());
        let index = u16::try_from(slot).expect("the depth is bounded");
        let entry = match (direction, self.registered) {
            (Direction::Read, true) => {
                opcode::ReadFixed::new(fd, address, len, index).offset(part.file_at).build()
            }
            (Direction::Read, false) => {
                opcode::Read::new(fd, address, len).offset(part.file_at).build()
            }
            (Direction::Write, true) => {
                opcode::WriteFixed::new(fd, address, len, index).offset(part.file_at).build()
            }
            (Direction::Write, false) => {
                opcode::Write::new(fd, address, len).offset(part.file_at).build()
            }
        };
        let entry = entry.user_data(slot as u64);
        // SAFETY: the buffer belongs to this slot, which has no other operation in flight, and is
        // not freed before the operation completes (see `drop`).
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.expect("the queue has an entry for every slot");
        self.in_flight[slot] = true;
    }

    /// The number of operations that are queued and not submitted.
    pub fn queued(&mut self) -> usize {
        self.uring.submission().len()
    }

    /// Submits the queued operations and does not wait. The next [`wait`](Ring::wait) submits those
    /// that the kernel does not accept now.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`.
    pub fn submit(&mut self) -> Result<(), Errno> {
        match self.uring.submit() {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
                errno => Err(errno.unwrap_or(Errno::IO)),
            },
        }
    }

    /// Submits the queued operations, waits for at least one completion, and passes every
    /// completion to `each`.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`. EAGAIN or EBUSY if the kernel is short of memory for seconds.
    pub fn wait(&mut self, mut each: impl FnMut(Completion)) -> Result<(), Errno> {
        let mut short = 0;
        loop {
            match self.uring.submit_and_wait(1) {
                Ok(_) => break,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    // The kernel is short of memory or its completion queue is full. Reaping
                    // completions frees space.
                    Some(Errno::AGAIN | Errno::BUSY) if !self.uring.completion().is_empty() => {
                        break;
                    }
                    Some(Errno::AGAIN | Errno::BUSY) if short < SHORT_MAX => {
                        short += 1;
                        std::thread::sleep(SHORT_PAUSE);
                    }
                    errno => return Err(errno.unwrap_or(Errno::IO)),
                },
            }
        }
        for entry in self.uring.completion() {
            let slot = usize::try_from(entry.user_data()).expect("a slot's number");
            self.in_flight[slot] = false;
            let result = usize::try_from(entry.result())
                .map_err(|_| Errno::from_raw_os_error(-entry.result()));
            each(Completion { slot, result });
        }
        Ok(())
    }

    /// The first `len` bytes of a slot's buffer.
    ///
    /// # Panics
    /// If the slot is busy, or shorter.
    pub fn bytes(&mut self, slot: usize, len: usize) -> &[u8] {
        assert!(!self.in_flight[slot], "slot {slot} is busy");
        assert!(len <= self.slot_bytes, "outside the slot");
        let start = slot * self.stride_bytes;
        let buffers = self.buffers.as_mut().expect("the ring is not being dropped");
        buffers.part(start, len)
    }

    /// Whether any operation is in flight.
    pub fn busy(&self) -> bool {
        self.in_flight.contains(&true)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Only a panic or a failed io_uring_enter leaves operations in flight here.
        while self.busy() {
            if self.wait(|_| ()).is_err() {
                // The kernel may still write to the buffers, so they are leaked and never freed.
                std::mem::forget(self.buffers.take());
                return;
            }
        }
    }
}

/// Whether a file is on FUSE. After a short read or write of a regular file io_uring continues within the
/// kernel, and with FUSE files that bypass the page cache it does so at the old offset: it counts bytes that it
/// has read again from there. Seen on Linux 6.18.
pub fn is_on_fuse(fd: BorrowedFd<'_>) -> bool {
    const FUSE: u64 = 0x6573_5546;
    rustix::fs::fstatfs(fd).is_ok_and(|stat| stat.f_type as u64 & 0xffff_ffff == FUSE)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use testfs::offset_in_page;

    use super::*;

    /// A ring; or `None`, after a message that says why the test is skipped.
    fn ring(depth: usize, slot_bytes: usize) -> Option<Ring> {
        match Ring::new(depth, slot_bytes) {
            Ok(ring) => Some(ring),
            Err(error) => {
                testfs::skip(&testfs::test_name(), &format!("io_uring: {error}"));
                None
            }
        }
    }

    /// Otherwise a device would be idle while earlier pieces are written.
    #[test]
    fn a_submitted_operation_completes_without_a_wait() {
        let Some(mut ring) = ring(2, 1000) else { return };
        let bytes = testfs::random_bytes(2000, 1);
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        for slot in [1, 0] {
            let part = Part { from: 0, len: 1000, file_at: 1000 * slot as u64 };
            ring.push(slot, Direction::Read, file.as_fd(), part);
        }
        assert_eq!(ring.uring.completion().len(), 0, "nothing was handed over yet");
        ring.submit().unwrap();
        let begun = Instant::now();
        while ring.uring.completion().len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(30), "nothing completes");
            std::thread::sleep(Duration::from_millis(1));
        }
        while ring.busy() {
            ring.wait(|completion| assert_eq!(completion.result, Ok(1000))).unwrap();
        }
        assert!(ring.bytes(0, 1000) == &bytes[..1000] && ring.bytes(1, 1000) == &bytes[1000..]);
        // Direct I/O may use a slot of any length.
        assert_eq!([0, 1].map(|slot| offset_in_page(ring.bytes(slot, 1))), [0, 0]);
    }
}
