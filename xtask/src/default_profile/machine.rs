//! The machine of a record: its description, and the folder of its records.

use lab::tune::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the file with the description in the folder of a machine.
pub(super) const FILE_NAME: &str = "machine.json";

/// The version of its form.
const SCHEMA_VERSION: u32 = 1;

/// A machine, as its first record tells it. What that does not tell is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Machine {
    /// [`SCHEMA_VERSION`].
    schema_version: u32,
    /// The maker of the processor, as it names itself.
    cpu_vendor: Option<String>,
    cpu_family: Option<u64>,
    cpu_model_number: Option<u64>,
    /// The processor, as the kernel names it.
    cpu_model: Option<String>,
    cpu_count: Option<u64>,
    memory_bytes: Option<u64>,
    /// Name, release and version of the kernel.
    kernel: Option<String>,
    virtual_machine: Option<bool>,
    /// The hypervisor, as it names itself.
    hypervisor: Option<String>,
    /// The date of the first record.
    date: String,
    /// The version of haulage that made it.
    haulage_version: Option<String>,
}

impl Machine {
    /// The machine of `record`.
    pub(super) fn of(record: &Record) -> Machine {
        let of = |key: &str| record.environment.get(key);
        let text = |key: &str| of(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| of(key).and_then(Value::as_u64);
        Machine {
            schema_version: SCHEMA_VERSION,
            cpu_vendor: text("cpu_vendor"),
            cpu_family: number("cpu_family"),
            cpu_model_number: number("cpu_model_number"),
            cpu_model: text("cpu_model"),
            cpu_count: number("cpu_count"),
            memory_bytes: number("memory_bytes"),
            kernel: text("kernel"),
            virtual_machine: of("virtual_machine").and_then(Value::as_bool),
            hypervisor: text("hypervisor"),
            date: record.date.clone(),
            haulage_version: text("haulage_version"),
        }
    }

    /// The machine of `records`, by the first of them. `None` without records.
    pub(super) fn of_first<'r>(records: impl IntoIterator<Item = &'r Record>) -> Option<Machine> {
        records.into_iter().min_by(|a, b| a.date.cmp(&b.date)).map(Machine::of)
    }

    /// The name of its folder: processor, number of processors, and kernel without its last number.
    /// Machines of one name count as one.
    pub(super) fn id(&self) -> String {
        let mut words = vec![self.cpu_model.as_deref().map_or_else(unknown, slug)];
        let numbers = [("family", self.cpu_family), ("model", self.cpu_model_number)];
        for (word, number) in numbers {
            words.extend(number.map(|number| format!("{word}-{number}")));
        }
        words.extend(self.cpu_count.map(|count| format!("{count}cpu")));
        words.push(self.kernel.as_deref().map_or_else(unknown, release));
        words.join("-")
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Letters and digits in lower case, with hyphens between words. Marks such as `(R)` are left out.
fn slug(text: &str) -> String {
    let plain = ["(R)", "(TM)", "(r)", "(tm)"]
        .iter()
        .fold(text.to_owned(), |text, mark| text.replace(mark, " "));
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// `linux-6.18` of `Linux 6.18.44 #1 SMP`.
fn release(kernel: &str) -> String {
    let mut words = kernel.split(' ');
    let (name, release) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let numbers: Vec<&str> = release.split(['.', '-']).take(2).collect();
    format!("{}-{}", slug(name), numbers.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(environment: Value, date: &str) -> Record {
        let record = serde_json::json!({
            "date": date, "environment": environment, "seconds_allowed": 1.0, "seconds": 1.0,
            "at_once": 2, "delta": 0.02, "situations": [], "refused": [],
        });
        serde_json::from_value(record).expect("a record")
    }

    #[test]
    fn the_name_tells_processor_and_kernel() {
        let intel = serde_json::json!({
            "cpu_model": "Intel(R) Xeon(R) Processor", "cpu_count": 2,
            "kernel": "Linux 6.18.44-fc #1 SMP PREEMPT_DYNAMIC",
        });
        let amd = serde_json::json!({
            "cpu_vendor": "AuthenticAMD", "cpu_family": 26, "cpu_model_number": 2,
            "cpu_model": "AMD EPYC", "cpu_count": 2, "kernel": "Linux 6.18-rc3 #1",
        });
        for (environment, expected) in [
            (intel, "intel-xeon-processor-2cpu-linux-6.18"),
            (amd, "amd-epyc-family-26-model-2-2cpu-linux-6.18"),
            (serde_json::json!({}), "unknown-unknown"),
        ] {
            assert_eq!(Machine::of(&record(environment, "")).id(), expected);
        }
    }

    #[test]
    fn the_first_record_describes_the_machine() {
        let of = |memory_bytes: u64, date: &str| {
            record(serde_json::json!({ "memory_bytes": memory_bytes }), date)
        };
        let records = [of(2, "2026-11-23T00:00:00Z"), of(1, "2026-11-22T00:00:00Z")];
        let machine = Machine::of_first(&records).expect("there are records");
        assert_eq!((machine.memory_bytes, &machine.date[..10]), (Some(1), "2026-11-22"));
        assert_eq!(Machine::of_first(&[]), None);
    }
}
