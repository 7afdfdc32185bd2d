//! A record to give to others: without names that belong to its machine.

use serde_json::{Map, Value};

use super::record::Record;

/// The names of each file system that belong to a machine and are no part of a measurement. A path
/// is replaced by the side's name.
const PATHS: &[&str] = &["path", "mount_point"];

impl Record {
    /// The summary without the names of the host, of directories, volumes and servers. Where both
    /// sides are one file system, both have one name still.
    #[must_use]
    pub fn exported(self) -> Record {
        let mut record = self.summary();
        let Some(environment) = record.environment.as_object_mut() else { return record };
        environment.remove("hostname");
        let of = |environment: &Map<String, Value>, side: &str| {
            let side = environment.get(side)?;
            Some((side.get("mount_point")?.clone(), side.get("device")?.clone()))
        };
        let is_same = of(environment, "src") == of(environment, "dst");
        for side in ["src", "dst"] {
            let name = if is_same { "src" } else { side };
            if let Some(file_system) = environment.get_mut(side).and_then(Value::as_object_mut) {
                strip(file_system, name);
            }
        }
        record
    }
}

fn strip(file_system: &mut Map<String, Value>, name: &str) {
    for key in PATHS {
        if let Some(path) = file_system.get_mut(*key) {
            *path = Value::from(name);
        }
    }
    if file_system.get("device").and_then(Value::as_str).is_some_and(is_name) {
        file_system.insert("device".to_owned(), Value::from("not told"));
    }
    if let Some(options) = file_system.get("mount_options").and_then(Value::as_str) {
        let kept = options.split(';').map(|part| {
            part.split(',').filter(|option| !tells_a_place(option)).collect::<Vec<_>>().join(",")
        });
        let kept = kept.collect::<Vec<_>>().join(";");
        file_system.insert("mount_options".to_owned(), Value::from(kept));
    }
}

/// Whether a device is more than one of the kernel's own names, such as `/dev/sda1` or `tmpfs`: a
/// share, `server:/export`, a volume, `/dev/mapper/desk-home`, or a data set, `pool/home`.
fn is_name(device: &str) -> bool {
    device.strip_prefix("/dev/").unwrap_or(device).contains(['/', ':'])
}

/// Whether a mount option tells a path, as `subvol=/home`, or a server, as `addr=192.0.2.7`.
fn tells_a_place(option: &str) -> bool {
    let addresses = ["addr=", "clientaddr=", "mountaddr=", "username=", "domain="];
    option.contains('/') || addresses.iter().any(|name| option.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(src: Value, dst: Value) -> Record {
        let record = serde_json::json!({
            "date": "", "environment": { "hostname": "desk", "cpu_count": 2, "src": src, "dst": dst },
            "seconds_allowed": 1.0, "seconds": 1.0, "at_once": 2, "delta": 0.02,
            "situations": [], "refused": [],
        });
        serde_json::from_value(record).expect("a record")
    }

    fn local(mount_point: &str) -> Value {
        serde_json::json!({
            "path": format!("{mount_point}/ann"), "mount_point": mount_point, "device": "/dev/sda1",
            "fs_type": "ext4", "mount_options": "rw",
        })
    }

    #[test]
    fn names_of_a_machine_are_not_exported() {
        let nfs = serde_json::json!({
            "path": "/net/ann", "mount_point": "/net", "device": "files.example.org:/export/ann",
            "fs_type": "nfs4", "mount_options": "rw,addr=192.0.2.7",
        });
        let given = record(local("/home"), nfs);
        let names = [
            "desk",
            "/home/ann",
            "/home",
            "/net/ann",
            "/net",
            "files.example.org:/export/ann",
            "addr=192.0.2.7",
        ];
        let before = given.environment.to_string();
        let text = given.exported().environment.to_string();
        for name in names {
            assert!(before.contains(name) && !text.contains(name), "{name} in {text}");
        }
        for kept in ["ext4", "nfs4", "/dev/sda1", "cpu_count"] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
    }

    #[test]
    fn volumes_and_paths_in_options_are_names() {
        for (device, expected) in [
            ("/dev/sda1", "/dev/sda1"),
            ("/dev/loop0", "/dev/loop0"),
            ("tmpfs", "tmpfs"),
            ("/dev/mapper/desk--vg-home", "not told"),
            ("//files/ann", "not told"),
            ("tank/home", "not told"),
        ] {
            let mut side = local("/home");
            side["device"] = device.into();
            side["mount_options"] = "rw,relatime;rw,ssd,subvol=/@home,commit=5".into();
            let exported = record(side.clone(), side).exported();
            let src = &exported.environment["src"];
            assert_eq!(src["device"], expected, "{device}");
            assert_eq!(src["mount_options"], "rw,relatime;rw,ssd,commit=5");
        }
    }

    #[test]
    fn one_file_system_is_still_one() {
        let side = |record: &Record, side: &str| record.environment[side]["mount_point"].clone();
        let same = record(local("/home"), local("/home")).exported();
        assert_eq!(side(&same, "src"), side(&same, "dst"));
        let two = record(local("/home"), local("/srv")).exported();
        assert_ne!(side(&two, "src"), side(&two, "dst"));
    }
}
