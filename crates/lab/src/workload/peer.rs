//! The other end of a connection: a process of its own, which receives or sends over loopback.
//!
//! It is a child of a [session](crate::session) and reads a [`PeerOrder`]. It listens on a port,
//! reports the port, and serves one connection after another until it is killed. No socket option
//! is set; buffers grow as the kernel sees fit.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use serde::{Deserialize, Serialize};
use sys::Buffer;
use xxhash_rust::xxh3::Xxh3;

use crate::error::Error;
use crate::process::{Group, LabProcess, own_pid, report};

/// What a peer is to do with each connection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PeerOrder {
    peer: Role,
    /// Bytes of one connection.
    bytes: u64,
    /// The number of the process whose peer it is.
    parent: Option<i32>,
}

/// Which end it is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// Reads all bytes, answers with one when it has the last, and tells their digest.
    Receiver,
    /// Waits for one byte and sends [`stream`] as fast as it can.
    Sender,
}

/// What a peer reports.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum PeerReport {
    Listening { port: u16 },
    Received { received: Received },
    Failed { why: String },
}

/// What came over one connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Received {
    /// Bytes.
    pub(crate) bytes: u64,
    /// The xxh3-128 of the bytes in hexadecimal.
    pub(crate) digest: String,
}

impl Received {
    /// So many bytes with this digest.
    pub(crate) fn of(bytes: u64, digest: &Xxh3) -> Received {
        Received { bytes, digest: format!("{:032x}", digest.digest128()) }
    }
}

/// Bytes that a peer reads or sends at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes with a number of their own in what a sender sends.
const NUMBERED_BYTES: usize = 4096;

/// The peer process, as the process that measures sees it.
#[derive(Debug)]
pub(crate) struct Peer {
    process: LabProcess,
    port: u16,
}

impl Peer {
    /// Starts one for connections of `bytes` each.
    pub(crate) fn start(role: Role, bytes: u64) -> Result<Peer, Error> {
        let cannot =
            |error: std::io::Error| Error::Unknown(format!("cannot start a peer: {error}"));
        let mut process = LabProcess::start(Group::Parents).map_err(cannot)?;
        process.send(&PeerOrder { peer: role, bytes, parent: Some(own_pid()) }).map_err(cannot)?;
        let mut peer = Peer { process, port: 0 };
        let PeerReport::Listening { port } = peer.report()? else { return Err(gone()) };
        Ok(Peer { port, ..peer })
    }

    /// The process id of the peer.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Connects to it.
    pub(crate) fn connect(&self) -> Result<TcpStream, Error> {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
            .map_err(|error| Error::Unknown(format!("cannot connect over loopback: {error}")))
    }

    /// What a receiver received over the last connection.
    pub(crate) fn received(&mut self) -> Result<Received, Error> {
        let PeerReport::Received { received } = self.report()? else { return Err(gone()) };
        Ok(received)
    }

    fn report(&mut self) -> Result<PeerReport, Error> {
        match self.process.receive() {
            Ok(Some(PeerReport::Failed { why })) => Err(Error::Unknown(why)),
            Ok(Some(report)) => Ok(report),
            Ok(None) | Err(_) => Err(gone()),
        }
    }
}

fn gone() -> Error {
    Error::Unknown("the other end of a connection ended or answered out of turn".to_owned())
}

/// The main function of a peer. Returns only when it cannot go on.
pub(crate) fn main(order: &PeerOrder) -> bool {
    let Err(error) = serve(order);
    report(&PeerReport::Failed { why: format!("the other end of a connection: {error}") });
    false
}

fn serve(order: &PeerOrder) -> std::io::Result<std::convert::Infallible> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    report(&PeerReport::Listening { port: listener.local_addr()?.port() });
    let mut piece = Buffer::page_aligned(PIECE_BYTES)?;
    piece.touch();
    loop {
        let (connection, _) = listener.accept()?;
        match order.peer {
            Role::Receiver => {
                let received = receive(connection, order.bytes, piece.as_mut_slice())?;
                report(&PeerReport::Received { received });
            }
            Role::Sender => match send(connection, order.bytes) {
                // The process that measures closed the connection, because something failed there.
                Err(error) if is_of_the_other_end(&error) => {}
                sent => sent?,
            },
        }
    }
}

fn is_of_the_other_end(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Reads up to `bytes`, or as many as come, and acknowledges the last before it digests it.
fn receive(mut connection: TcpStream, bytes: u64, piece: &mut [u8]) -> std::io::Result<Received> {
    let mut digest = Xxh3::new();
    let mut received = 0;
    loop {
        let got = match connection.read(piece) {
            Ok(got) => got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) if is_of_the_other_end(&error) => 0,
            Err(error) => return Err(error),
        };
        let was_short = received < bytes;
        received += got as u64;
        if was_short && received >= bytes {
            // The other end may no longer wait for it.
            let _ = connection.write_all(&[1]);
        }
        digest.update(&piece[..got]);
        // Reading goes on to the end, so that a byte too many is found.
        if got == 0 {
            return Ok(Received::of(received, &digest));
        }
    }
}

fn send(mut connection: TcpStream, bytes: u64) -> std::io::Result<()> {
    let mut piece = Buffer::page_aligned(PIECE_BYTES)?;
    let piece = piece.as_mut_slice();
    let mut at = 0;
    stream(0, piece);
    connection.read_exact(&mut [0])?;
    while at < bytes {
        number(at, piece);
        #[allow(clippy::cast_possible_truncation)] // At most the length of a piece.
        let len = (bytes - at).min(PIECE_BYTES as u64) as usize;
        connection.write_all(&piece[..len])?;
        at += len as u64;
    }
    Ok(())
}

/// What a sender sends at `at`, a multiple of 256 KiB from the start: the same noise again and
/// again, which costs nothing to make, in which every 4 KiB begin with their number.
pub(crate) fn stream(at: u64, bytes: &mut [u8]) {
    for piece in bytes.chunks_mut(PIECE_BYTES) {
        fastrand::Rng::with_seed(1).fill(piece);
    }
    number(at, bytes);
}

fn number(at: u64, bytes: &mut [u8]) {
    let first = at / NUMBERED_BYTES as u64;
    for (index, numbered) in (first..).zip(bytes.chunks_mut(NUMBERED_BYTES)) {
        let number = index.to_le_bytes();
        let len = number.len().min(numbered.len());
        numbered[..len].copy_from_slice(&number[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_different() {
        let mut whole = vec![0; (1 << 20) + 1003];
        stream(0, &mut whole);
        let pages: std::collections::HashSet<&[u8]> = whole.chunks(4096).collect();
        assert_eq!(pages.len(), 257);
    }

    /// Serves one connection in a thread.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        let here = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        (here, listener.accept().expect("accepted").0)
    }

    #[test]
    fn too_much_and_too_little_are_found() {
        let digest = |bytes: &[u8]| format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes));
        for sent in [0_usize, 999, 1000, 1001] {
            let (mut here, there) = pair();
            let receiver = std::thread::spawn(move || receive(there, 1000, &mut [0; 300]));
            here.write_all(&vec![7; sent]).expect("sent");
            here.shutdown(std::net::Shutdown::Write).expect("shut");
            let acknowledged = here.read(&mut [0; 2]).expect("read");
            assert_eq!(acknowledged, usize::from(sent >= 1000), "{sent}");
            let received = receiver.join().expect("joined").expect("received");
            let expected = Received { bytes: sent as u64, digest: digest(&vec![7; sent]) };
            assert_eq!(received, expected);
        }
    }

    #[test]
    fn a_sender_waits_for_the_first_byte() {
        for first in [0, 1] {
            let (mut here, there) = pair();
            let sender = std::thread::spawn(move || send(there, 300_000).is_ok());
            here.write_all(&[1][..first]).expect("sent");
            here.shutdown(std::net::Shutdown::Write).expect("shut");
            let (mut found, mut expected) = (Vec::new(), vec![0; 300_000 * first]);
            here.read_to_end(&mut found).expect("read");
            stream(0, &mut expected);
            assert!(found == expected, "{first} bytes sent, {} came", found.len());
            assert_eq!(sender.join().expect("joined"), first == 1);
        }
    }
}
