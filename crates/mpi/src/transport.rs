//! How messages travel.

/// The connection of one rank with the others. Messages from one rank to another arrive in the order
/// in which they were sent; none is lost. One thread uses it.
pub trait Transport {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// How many ranks there are.
    fn ranks(&self) -> u32;

    /// The name of the host of this rank.
    fn host(&self) -> String;

    /// Differs between hosts, and between two starts of one. Empty if it is unknown.
    fn boot_id(&self) -> Vec<u8> {
        std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
    }

    /// Sends the messages. Meanwhile messages may arrive, and are kept.
    fn send(&mut self, messages: Vec<(u32, Vec<u8>)>);

    /// The next message that has arrived, and its sender. Does not wait.
    fn receive(&mut self) -> Option<(u32, Vec<u8>)>;

    /// Ends all ranks at once, if this one cannot go on.
    fn abort(&self) -> !;
}
