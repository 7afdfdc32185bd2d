//! Receives from a TCP socket on loopback into a file: into mapped windows of the file, or by the
//! engines that cp uses.
//!
//! The sender is a [peer](super::peer) process. Each run has its own connection, made before the
//! clock starts. The byte that tells the sender to begin is written inside the timed part;
//! otherwise the sender would have filled the socket buffers before. With mmap the file first gets
//! its full length.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use engines::{Errno, Pair, Pos, Side, Span, Variant};
use sys::Window;

use super::interface::{Needs, ReadyVariant, Setting, StartResult, Workload};
use super::output::{Opened, Output};
use super::parameters;
use super::peer::{self, Peer, Role};
use super::windows::Windows;
use crate::clock::{Clock, Counters};
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::trial::attribution::Attribution;
use crate::trial::digest::Digests;
use crate::trial::{NotRun, Runner};

pub(crate) static RECEIVE: Workload = Workload {
    name: "receive",
    variants: "mmap:8M, with populate, or an engine that reads from sockets, as read_write:64K",
    check: |variant| Method::parse(variant).map(drop),
    start,
    needs: |cell| Needs { dst_bytes: cell.run_bytes(), ..Needs::default() },
    has_state: false,
    can_be_durable: true,
    calls_of_run: None,
};

/// How the bytes get into the file. `E` is an engine that is named, or one that is ready.
enum Method<E> {
    Mmap(Windows),
    Engine(E),
}

impl Method<Variant> {
    fn parse(text: &str) -> Result<Method<Variant>, String> {
        if let Some(windows) = text.strip_prefix("mmap:") {
            return Windows::parse(windows).map(Method::Mmap);
        }
        parameters::stream_variant_of(text, Side::Src).map(Method::Engine)
    }
}

struct Receiving {
    method: Method<Runner>,
    sender: Peer,
    output: Output,
}

fn start(setting: &Setting<'_>, text: &str) -> StartResult {
    parameters::one_file(setting.cell)?;
    let method = match Method::parse(text)? {
        Method::Mmap(windows) => Method::Mmap(windows),
        Method::Engine(variant) => Method::Engine(Runner::start(&variant)?),
    };
    let bytes = setting.cell.file_bytes;
    let sender = Peer::start(Role::Sender, bytes)?;
    let output = Output::new(setting, text, Digests::of_made(bytes, peer::stream))?;
    Ok(Box::new(Receiving { method, sender, output }))
}

/// Reads the socket into a window of the file until it is full. Returns the number of reads.
fn read_into(window: &mut Window, src: BorrowedFd<'_>, len: usize) -> rustix::io::Result<u64> {
    let (mut filled, mut calls) = (0, 0);
    while filled < len {
        match window.read_from(filled, src) {
            Ok(0) => return Err(Errno::PIPE),
            Ok(got) => filled += got,
            Err(Errno::INTR) => {}
            // A page that the disk has no space for or cannot write.
            Err(Errno::FAULT) => return Err(Errno::NOSPC),
            Err(errno) => return Err(errno),
        }
        calls += 1;
    }
    Ok(calls)
}

impl Receiving {
    /// Receives under the clock. Returns the number of calls where it is known.
    fn receive(
        &mut self,
        connection: &TcpStream,
        opened: &Opened,
        clock: Clock<'_>,
        measured: &mut Measurement,
    ) -> Result<(Option<Attribution>, Option<u64>), Error> {
        let (src, dst) = (connection.as_fd(), opened.fd.as_fd());
        let begin = || {
            { connection }.write_all(&[1]).map_err(|error| {
                Error::Unknown(format!("cannot have the other end begin: {error}"))
            })
        };
        match &mut self.method {
            Method::Mmap(windows) => {
                let read = |window: &mut Window, _, len| read_into(window, src, len);
                let received = clock.time(measured, || {
                    begin()?;
                    Ok(windows.fill(dst, self.output.bytes, read))
                })?;
                let calls = received.map_err(|errno| {
                    let why = engines::describe(errno);
                    Error::Unknown(format!(
                        "{} could not receive the file: {why}",
                        self.output.variant
                    ))
                })?;
                Ok((None, Some(calls)))
            }
            Method::Engine(runner) => {
                let span = Span { src: Pos::Here, dst: Pos::At(0), len: self.output.bytes };
                let pair = Pair::new(src, dst);
                let share = runner.stream(pair, span, begin, clock, measured)?;
                Ok((Some(share), None))
            }
        }
    }
}

impl ReadyVariant for Receiving {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let connection = self.sender.connect()?;
        let opened = self.output.open()?;
        let counters = Counters::read();
        let mut measured = Measurement::without_source();
        let (share, calls) = self.receive(&connection, &opened, clock, &mut measured)?;
        self.output.sync(&opened, &mut measured)?;
        counters.fill_since(&mut measured);
        measured.calls = calls;
        // It may have been the sender that it waited for.
        measured.processor_wait_ns = None;
        self.output.end(opened, &mut measured)?;
        if let Some(share) = share {
            share.fill(&mut measured)?;
        }
        Ok(measured)
    }

    fn helpers(&self) -> Vec<u32> {
        vec![self.sender.id()]
    }
}
