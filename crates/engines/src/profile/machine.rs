//! The machine on which a choice was measured.

use std::fs::File;
use std::io::Read;

/// The identity of a machine. A line of a profile without a key fits any value of that key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// A digest of /etc/machine-id. The ID itself must not be exposed: machine-id(5).
    pub id: Option<String>,
    /// The processor, as the kernel names it: a disk may have been moved to another machine.
    pub cpu: Option<String>,
    /// The host name of the machine, for the reader only.
    pub host: Option<String>,
}

/// The application-specific input of the digest.
const CONTEXT: &str = "haulage profile: the identity of a machine";

/// Hexadecimal digits of the identity: 64 bits distinguish any number of machines that one person
/// has.
const ID_DIGITS: usize = 16;

impl Machine {
    /// The current machine.
    #[must_use]
    pub fn this() -> Machine {
        let host = sys::uname().ok().map(|names| names.nodename);
        let id = ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().find_map(|file| {
            let id = std::fs::read_to_string(file).ok()?;
            Some(id.trim().to_owned()).filter(|id| !id.is_empty())
        });
        // A machine without a machine ID is identified by its host name.
        let id = id.unwrap_or_else(|| format!("host {}", host.as_deref().unwrap_or_default()));
        Machine { id: Some(digest(&id)), cpu: cpu_model(), host }
    }

    /// Whether both name one machine, whatever the host names.
    pub(super) fn is_same(&self, other: &Machine) -> bool {
        (&self.id, &self.cpu) == (&other.id, &other.cpu)
    }

    /// Whether a measurement on this machine holds on the machine `found`.
    #[must_use]
    pub fn fits(&self, found: &Machine) -> bool {
        (self.id.is_none() || self.id == found.id) && (self.cpu.is_none() || self.cpu == found.cpu)
    }
}

fn digest(id: &str) -> String {
    let key = blake3::derive_key(CONTEXT, id.as_bytes());
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    digits[..ID_DIGITS].to_owned()
}

/// The length of the first processor's entry in /proc/cpuinfo, at most. The kernel generates the
/// rest during the read, which takes long with many processors.
const CPUINFO_BYTES: u64 = 4096;

/// The processor, as the kernel names it; `None` if it does not.
#[must_use]
pub fn cpu_model() -> Option<String> {
    let mut text = Vec::with_capacity(8192);
    File::open("/proc/cpuinfo").ok()?.take(CPUINFO_BYTES).read_to_end(&mut text).ok()?;
    cpu_model_of(&String::from_utf8_lossy(&text))
}

/// The name in the text of /proc/cpuinfo. AArch64 has no name there, but the numbers of the maker and of the part.
fn cpu_model_of(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let by_number = || {
        Some(format!("CPU implementer {} part {}", field("CPU implementer")?, field("CPU part")?))
    };
    field("model name").map(str::to_owned).or_else(by_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_fits_itself_and_no_other() {
        let this = Machine::this();
        assert_eq!(this.id.as_ref().map(String::len), Some(ID_DIGITS));
        assert!(this.fits(&Machine::this()));
        assert!(Machine::default().fits(&this), "a line for any machine");
        let renamed = Machine { host: Some(String::from("other")), ..this.clone() };
        assert!(renamed.fits(&this), "its name may change");
        let moved = Machine { cpu: Some(String::from("another")), ..this.clone() };
        assert!(!moved.fits(&this));
        let other = Machine { id: Some(digest("other")), ..this.clone() };
        assert!(!other.fits(&this));
    }

    #[test]
    fn a_processor_has_a_name_or_numbers() {
        let x86 = "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD: EPYC\n";
        let aarch64 =
            "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n";
        for (cpuinfo, name) in [
            (x86, Some("AMD: EPYC")),
            (aarch64, Some("CPU implementer 0x41 part 0xd0c")),
            ("processor\t: 0\n", None),
        ] {
            assert_eq!(cpu_model_of(cpuinfo).as_deref(), name, "{cpuinfo}");
        }
    }

    #[test]
    fn the_machine_id_is_not_exposed() {
        let Ok(id) = std::fs::read_to_string("/etc/machine-id") else { return };
        let digest = digest(id.trim());
        assert!(!id.contains(&digest) && digest.chars().all(|digit| digit.is_ascii_hexdigit()));
    }
}
