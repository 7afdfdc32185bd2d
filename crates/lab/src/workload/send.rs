//! Sends a file to a TCP socket on loopback, by the engines that cp uses.
//!
//! The receiver is a [peer](super::peer) process. Each run has its own connection, made before the
//! clock starts. The time ends when the sender's last call returns, when socket buffers may still
//! be full. The durable time ends when the receiver has confirmed the last byte. Processor time is
//! the sender's, which includes much of the kernel's work of receiving.

use std::io::Read;
use std::os::fd::AsFd;

use engines::{Meter, Pair, Pos, Side, Span, Variant};
use xxhash_rust::xxh3::Xxh3;

use super::cached_source::CachedSource;
use super::interface::{Needs, ReadyVariant, Setting, StartResult, Workload};
use super::parameters;
use super::peer::{Peer, Received, Role};
use crate::clock::{Clock, note_durable};
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::trial::{NotRun, Runner};

pub(crate) static SEND: Workload = Workload {
    name: "send",
    variants: "an engine that writes to sockets with its tuning, as sendfile or mmap:8M",
    check: |variant| parse(variant).map(drop),
    start,
    needs: |cell| Needs { src_bytes: cell.run_bytes(), ..Needs::default() },
    has_state: true,
    can_be_durable: true,
    calls_of_run: None,
};

fn parse(text: &str) -> Result<Variant, String> {
    let variant = parameters::stream_variant_of(text, Side::Dst)?;
    if variant.engine.params.iter().any(|p| p.name == "dst") && variant.tuning.flag("dst") {
        return Err("a socket cannot be mapped".to_owned());
    }
    Ok(variant)
}

struct Sending {
    text: String,
    cached: CachedSource,
    runner: Runner,
    receiver: Peer,
    expected: Received,
}

fn start(setting: &Setting<'_>, text: &str) -> StartResult {
    parameters::one_file(setting.cell)?;
    let runner = Runner::start(&parse(text)?)?;
    let cached = CachedSource::open(setting)?;
    Ok(Box::new(Sending {
        text: text.to_owned(),
        expected: expected(&cached)?,
        receiver: Peer::start(Role::Receiver, cached.load.bytes)?,
        cached,
        runner,
    }))
}

fn expected(cached: &CachedSource) -> Result<Received, Error> {
    let mut digest = Xxh3::new();
    cached.read(&cached.load.parts[0], |bytes| digest.update(bytes))?;
    Ok(Received::of(cached.load.bytes, &digest))
}

impl Sending {
    fn span(&self) -> Span {
        Span { src: Pos::At(0), dst: Pos::Here, len: self.cached.load.bytes }
    }

    /// The receiver must have received the file.
    fn check(&mut self) -> Result<(), Error> {
        let received = self.receiver.received()?;
        if received == self.expected {
            return Ok(());
        }
        // The variant is not to blame when another process wrote to the source meanwhile.
        self.cached.source.open_file(0)?;
        let how = match received.bytes == self.expected.bytes {
            true => "other bytes arrived than were sent".to_owned(),
            false => format!("{} bytes arrived and not {}", received.bytes, self.expected.bytes),
        };
        Err(Error::Wrong { variant: self.text.clone(), how })
    }
}

impl ReadyVariant for Sending {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let mut connection = self.receiver.connect()?;
        let src = self.cached.source.open_file(0)?;
        let started = self.cached.begin()?;
        let mut measured = Measurement::default();
        let pair = Pair::new(src.as_fd(), connection.as_fd());
        let span = self.span();
        let share = self.runner.stream(pair, span, || Ok(()), clock, &mut measured)?;
        let acknowledged = connection.read_exact(&mut [0]);
        note_durable(&mut measured);
        acknowledged.map_err(|error| Error::Unknown(format!("no acknowledgement: {error}")))?;
        self.cached.end(started, &mut measured)?;
        drop(connection);
        self.check()?;
        share.fill(&mut measured)?;
        // It may have been the receiver that it waited for.
        measured.processor_wait_ns = None;
        measured.verified = true;
        Ok(measured)
    }

    fn helpers(&self) -> Vec<u32> {
        vec![self.receiver.id()]
    }

    fn count_calls(&mut self) -> Result<Option<u64>, Error> {
        let connection = self.receiver.connect()?;
        let src = self.cached.source.open_file(0)?;
        let meter = Meter::default();
        let pair = Pair::new(src.as_fd(), connection.as_fd()).with_meter(Some(&meter));
        let span = self.span();
        let (clock, mut measured) = (Clock::default(), Measurement::default());
        self.runner.stream(pair, span, || Ok(()), clock, &mut measured)?;
        drop(connection);
        self.check()?;
        Ok(Some(meter.calls()))
    }
}
