//! Messages by MPI.

use std::collections::VecDeque;

use mpi::Threading;
use mpi::datatype::Equivalence;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;

use crate::transport::Transport;

/// The ranks of an MPI job.
pub struct Network {
    world: SimpleCommunicator,
    /// Ends MPI when it is dropped.
    _universe: Universe,
    /// What arrived while messages were sent.
    arrived: VecDeque<(u32, Vec<u8>)>,
}

impl Network {
    /// Joins the job that this process was started for. `None` if MPI is running already, or does not
    /// bear that there are other threads. Only this thread may use it.
    #[must_use]
    pub fn join() -> Option<Network> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Funneled)?;
        if threading < Threading::Funneled {
            return None;
        }
        let world = universe.world();
        Some(Network { world, _universe: universe, arrived: VecDeque::new() })
    }
}

fn number(rank: i32) -> u32 {
    u32::try_from(rank).expect("ranks are numbered from 0")
}

/// A message that has arrived.
fn receive(world: &SimpleCommunicator) -> Option<(u32, Vec<u8>)> {
    let (message, status) = world.any_process().immediate_matched_probe()?;
    let bytes = usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or_default();
    let mut buffer = vec![0; bytes];
    message.matched_receive_into(&mut buffer[..]);
    Some((number(status.source_rank()), buffer))
}

impl Transport for Network {
    fn rank(&self) -> u32 {
        number(self.world.rank())
    }

    fn ranks(&self) -> u32 {
        number(self.world.size())
    }

    fn host(&self) -> String {
        mpi::environment::processor_name().unwrap_or_else(|_| String::from("unknown"))
    }

    fn send(&mut self, messages: Vec<(u32, Vec<u8>)>) {
        let Network { world, arrived, .. } = self;
        let buffers: Vec<&[u8]> = messages.iter().map(|(_, bytes)| &bytes[..]).collect();
        multiple_scope(messages.len(), |scope, requests| {
            for ((to, _), buffer) in messages.iter().zip(&buffers) {
                let to = i32::try_from(*to).expect("it came from an i32");
                requests.add(world.process_at_rank(to).immediate_send(scope, *buffer));
            }
            let mut done = Vec::new();
            while requests.incomplete() > 0 {
                requests.test_some(&mut done);
                // Two ranks that send long messages to each other must both receive.
                while let Some(message) = receive(world) {
                    arrived.push_back(message);
                }
            }
        });
    }

    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        self.arrived.pop_front().or_else(|| receive(&self.world))
    }

    fn abort(&self) -> ! {
        self.world.abort(1);
    }
}
