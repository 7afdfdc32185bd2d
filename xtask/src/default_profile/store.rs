//! The folder record/: a folder a machine, with its description and its records.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use lab::tune::record::{Record, Records};

use super::machine::{self, Machine};

/// The folder of all records.
pub(super) fn record_dir() -> PathBuf {
    root().join("record")
}

/// The root of the repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ is in the repository")
}

/// Every record below `dir`, by machine and file name, each checked.
///
/// # Errors
/// If a file is no record, if a record lies in the folder of another machine, or if the description
/// of a machine does not follow from its records.
pub(super) fn read_all(dir: &Path) -> anyhow::Result<Vec<Record>> {
    let mut all = Vec::new();
    for folder in entries(dir)? {
        ensure!(folder.is_dir(), "'{}' is in no machine's folder", folder.display());
        let records = read_machine(&folder)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (path, record) in &records {
            let id = Machine::of(record).id();
            ensure!(id == name, "'{}' is a record of {id}", path.display());
            check(record).with_context(|| path.display().to_string())?;
        }
        let described = Machine::of_first(records.iter().map(|(_, record)| record));
        let path = folder.join(machine::FILE_NAME);
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let read: Machine =
            serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
        ensure!(
            Some(read) == described,
            "'{}' is not what the records beside it tell: run cargo xtask default-profile",
            path.display()
        );
        all.extend(records.into_iter().map(|(_, record)| record));
    }
    Ok(all)
}

/// Writes the description of each machine below `dir` as its records tell it.
pub(super) fn describe_machines(dir: &Path) -> anyhow::Result<()> {
    for folder in entries(dir)?.into_iter().filter(|folder| folder.is_dir()) {
        let records = read_machine(&folder)?;
        if let Some(machine) = Machine::of_first(records.iter().map(|(_, record)| record)) {
            write_json(&folder.join(machine::FILE_NAME), &machine)?;
        }
    }
    Ok(())
}

/// The records in the folder of a machine, with their paths.
fn read_machine(folder: &Path) -> anyhow::Result<Vec<(PathBuf, Record)>> {
    let mut records = Vec::new();
    for path in entries(folder)? {
        let is_record = path.extension().is_some_and(|extension| extension == "json")
            && path.file_name().is_some_and(|name| name != machine::FILE_NAME);
        if is_record {
            let pairs = read(&path)?.pairs.into_iter();
            records.extend(pairs.map(|record| (path.clone(), record)));
        }
    }
    Ok(records)
}

/// The records of a file.
pub(super) fn read(path: &Path) -> anyhow::Result<Records> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    Records::parse(&text).map_err(|why| anyhow!("'{}': {why}", path.display()))
}

/// Adds `records` below `dir`, one file a pair of file systems, and returns the paths. A record of
/// the same machine, pair and `suffix` is replaced.
pub(super) fn add(
    dir: &Path,
    records: Vec<Record>,
    suffix: Option<&str>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for record in records {
        let record = record.exported();
        check(&record)?;
        let folder = dir.join(Machine::of(&record).id());
        let [src, dst] = fs_types(&record).context("it names no file systems")?;
        let suffix = suffix.map_or_else(String::new, |suffix| format!("-{suffix}"));
        let path = folder.join(format!("{src}-{dst}{suffix}.json"));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        write_json(&path, &Records::of(vec![record]))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Whether a record is of use for the built-in profile, and has no names of its machine.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(record: &Record) -> anyhow::Result<()> {
    let of = |key: &str| record.environment.get(key);
    for key in ["cpu_model", "cpu_count", "memory_bytes", "kernel", "haulage_version"] {
        ensure!(of(key).is_some_and(|value| !value.is_null()), "its environment has no {key}");
    }
    ensure!(
        of("optimized_build").and_then(serde_json::Value::as_bool) == Some(true),
        "it was measured by a build without optimisation"
    );
    ensure!(fs_types(record).is_some(), "its environment does not name the file systems");
    let answered: Vec<_> = record.situations.iter().filter(|it| it.choice.is_some()).collect();
    ensure!(!answered.is_empty(), "it has no answer for any situation");
    for finding in answered {
        let words = &finding.words;
        ensure!(finding.situation().is_some(), "{words}: no situation of this version");
        ensure!(finding.rule.is_some(), "{words}: it does not tell the rule");
        ensure!(finding.chosen().is_some(), "{words}: there is no result of the choice");
        for name in finding.names() {
            let ratio = finding.ratio_to_best(name);
            // Elimination rounds are few: a variant that left there may have been faster in them.
            if ratio.is_some_and(|ratio| !ratio.is_finite() || ratio < 0.2) {
                bail!("{words}: {name} has the ratio {}", ratio.unwrap_or_default());
            }
        }
    }
    Ok(())
}

/// Whether a record may be given to others.
///
/// # Errors
/// Names that belong to its machine.
pub(super) fn check_names(record: &Record) -> anyhow::Result<()> {
    let names = record.names_of_its_machine();
    ensure!(
        names.is_empty(),
        "it has names of its machine ({}): write it with haulage tune --export",
        names.join(", ")
    );
    Ok(())
}

/// The types of the file systems.
pub(super) fn fs_types(record: &Record) -> Option<[String; 2]> {
    let of = |side: &str| {
        let fs_type = record.environment.get(side)?.get("fs_type")?.as_str()?;
        Some(fs_type.to_owned())
    };
    Some([of("src")?, of("dst")?])
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// The entries of a folder, by name; none if it does not exist.
fn entries(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = match std::fs::read_dir(dir) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        // Nothing was measured: the rule applies everywhere.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => bail!("'{}': {error}", dir.display()),
    };
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(change: impl FnOnce(&mut Value)) -> Record {
        let side = json!({ "fs_type": "ext4", "mount_point": "/data", "path": "/data", "device": "/dev/sda1" });
        let mut record = json!({
            "date": "2026-11-24T00:00:00Z",
            "environment": {
                "cpu_model": "AMD EPYC", "cpu_family": 26, "cpu_count": 2, "memory_bytes": 1,
                "kernel": "Linux 6.18.1 #1", "haulage_version": "0.1.0", "optimized_build": true,
                "hostname": "desk", "src": side, "dst": side,
            },
            "seconds_allowed": 1.0, "seconds": 1.0, "at_once": 2, "delta": 0.02, "refused": [],
            "situations": [{
                "size": "16M to 256M", "residency": "resident", "in_flight": "one", "no_cache": false,
                "words": "alone", "file_bytes": 1, "files": 1, "why_not": "", "choice": "sendfile",
                "best": "sendfile", "default": "read_write:256K", "rule": "read_write:256K",
                "settled": true, "rounds": 9, "seconds": 1.0, "default_loss": null,
                "gnu_cp_loss": null, "copy_file_range_loss": null,
                "ways": [{
                    "name": "sendfile", "standing": "chosen", "reason": "", "shares_extents": false,
                    "file_ns_median": 1e6, "megabytes_per_second": 1e3, "ratio_to_best": 1.0,
                    "ratio_low": 1.0, "ratio_high": 1.0,
                }],
            }],
        });
        change(&mut record);
        serde_json::from_value(record).expect("a record")
    }

    #[test]
    fn what_is_missing_is_told() {
        check(&record(|_| {})).expect("it is complete");
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 7] = [
            (|it| it["environment"]["kernel"] = Value::Null, "no kernel"),
            (|it| it["environment"]["optimized_build"] = json!(false), "without optimisation"),
            (|it| it["environment"]["dst"] = json!({}), "does not name the file systems"),
            (|it| it["situations"][0]["choice"] = Value::Null, "no answer"),
            (|it| it["situations"][0]["rule"] = Value::Null, "the rule"),
            (|it| it["situations"][0]["ways"] = json!([]), "no result of the choice"),
            (|it| it["situations"][0]["left"] = json!({ "splice": 0.01 }), "splice has the ratio"),
        ];
        for (change, expected) in cases {
            let why = check(&record(change)).expect_err(expected).to_string();
            assert!(why.contains(expected), "{why}");
        }
        let why = check_names(&record(|_| {})).expect_err("it has names").to_string();
        assert!(why.contains("desk, /data"), "{why}");
        check_names(&record(|_| {}).exported()).expect("no names");
    }

    #[test]
    fn records_are_kept_by_machine_and_described() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        let paths = add(dir, vec![record(|_| {})], Some("small-blocks")).expect("added");
        let folder = dir.join("amd-epyc-family-26-2cpu-linux-6.18");
        assert_eq!(paths, [folder.join("ext4-ext4-small-blocks.json")]);
        read_all(dir).expect_err("the machine is not described");
        describe_machines(dir).expect("described");
        let read = read_all(dir).expect("as it should be");
        assert_eq!(read.len(), 1);
        check_names(&read[0]).expect("names are not kept");
        // A description that was changed, a record in the wrong folder, and one in none.
        let description = folder.join(machine::FILE_NAME);
        let text = std::fs::read_to_string(&description).expect("written");
        std::fs::write(&description, text.replace("\"cpu_count\": 2", "\"cpu_count\": 4"))
            .expect("written");
        let why = read_all(dir).expect_err("another description").to_string();
        assert!(why.contains("not what the records beside it tell"), "{why}");
        std::fs::write(&description, text).expect("written");
        std::fs::rename(&folder, dir.join("other")).expect("renamed");
        let why = read_all(dir).expect_err("another machine").to_string();
        assert!(why.contains("a record of amd-epyc"), "{why}");
        std::fs::rename(dir.join("other"), &folder).expect("renamed");
        std::fs::copy(&paths[0], dir.join("loose.json")).expect("copied");
        let why = read_all(dir).expect_err("a loose record").to_string();
        assert!(why.contains("in no machine's folder"), "{why}");
    }
}
