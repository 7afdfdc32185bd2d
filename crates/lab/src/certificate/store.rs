//! Where certificates are stored, for which machine and file systems one holds, and when it
//! expires.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Certificate;
use crate::conduct::cell_run::CellRun;
use crate::definition::deltas::{Deltas, LEAST};
use crate::environment::{self, FileSystem};
use crate::run_dir::Run;
use crate::run_dir::files::{self, RunError, failed};
use crate::verdict::Verdict;

/// The machine and file systems of a certificate. Others have other noise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Identifies the machine: /etc/machine-id, machine-id(5). None where it has none.
    pub machine_id: Option<String>,
    /// The host name of the machine.
    pub host: String,
    /// The processor of the machine, as the kernel names it.
    pub cpu_model: Option<String>,
    /// Processors that may be used.
    pub cpu_count: usize,
    /// Where sources lie.
    pub src: Place,
    /// Where copies go.
    pub dst: Place,
}

/// One file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The type of the file system.
    pub fs_type: Option<String>,
    /// The device of the file system.
    pub device: Option<String>,
    /// Where it is mounted.
    pub mount_point: Option<String>,
}

/// A certificate as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredCertificate {
    /// What it is about.
    pub subject: Subject,
    /// When it was made, in UTC.
    pub made: String,
    /// The kernel under which it was made.
    pub kernel: String,
    /// The version of haulage that made it.
    pub haulage_version: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// What all orders follow from.
    pub seed: u64,
    /// What was found.
    pub certificate: Certificate,
}

/// What is known of the protocol on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateStatus {
    /// The protocol was certified here and meets all criteria.
    Certified,
    /// The protocol was certified here and misses a criterion.
    Failed,
    /// The protocol was certified here under another kernel or by another version.
    Stale,
    /// The protocol was not certified here.
    NotCertified,
}

/// A certificate's status with a sentence, and what follows for δ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Badge {
    /// Whether it holds.
    pub status: CertificateStatus,
    /// The status in words.
    pub words: String,
    /// Differences up to these shares do not matter.
    pub deltas: Deltas,
    /// Where that comes from, in words.
    pub delta_from: String,
}

impl Subject {
    /// The machine and the file systems of two directories.
    pub fn of(src: &Path, dst: &Path) -> Subject {
        let machine_id = std::fs::read_to_string("/etc/machine-id").ok();
        Subject {
            machine_id: machine_id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()),
            host: environment::host(),
            cpu_model: engines::profile::cpu_model(),
            cpu_count: std::thread::available_parallelism().map_or(1, usize::from),
            src: Place::of(src),
            dst: Place::of(dst),
        }
    }

    /// The name of its file: what a reader knows it by, and a digest of all of it.
    pub fn file_name(&self) -> String {
        let text = serde_json::to_vec(self).expect("plain data");
        let fs_type = self.dst.fs_type.as_deref().unwrap_or("unknown");
        let fs_type: String =
            fs_type.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        format!("{}-{fs_type}-{:016x}.json", self.host, xxhash_rust::xxh3::xxh3_64(&text))
    }
}

impl Place {
    fn of(dir: &Path) -> Place {
        let FileSystem { fs_type, device, mount_point, .. } = FileSystem::of(dir);
        Place { fs_type, device, mount_point }
    }

    fn in_words(&self) -> String {
        match (&self.fs_type, &self.mount_point) {
            (Some(fs_type), Some(mount_point)) => format!("{fs_type} at {mount_point}"),
            (Some(fs_type), None) => fs_type.clone(),
            _ => "an unknown file system".to_owned(),
        }
    }
}

impl StoredCertificate {
    /// Writes it to `dir`, which is made if need be; an earlier one of the same subject is
    /// replaced. Returns the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, dir: &Path) -> Result<PathBuf, RunError> {
        std::fs::create_dir_all(dir).map_err(failed("create", dir))?;
        let path = dir.join(self.subject.file_name());
        files::write(&path, &serde_json::to_vec_pretty(self).expect("plain data"))?;
        Ok(path)
    }

    /// The one for `subject` in `dir`, where there is one that this version can read.
    pub fn find(dir: &Path, subject: &Subject) -> Option<StoredCertificate> {
        // One that another version wrote in another form is as good as none.
        let kept = StoredCertificate::read(&dir.join(subject.file_name())).ok().flatten();
        kept.filter(|kept| kept.subject == *subject)
    }

    /// The one that was in force for the run in `run_dir`, where there was one.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn of_run(run_dir: &Path) -> Result<Option<StoredCertificate>, RunError> {
        StoredCertificate::read(&run_dir.join(files::CERTIFICATE))
    }

    fn read(path: &Path) -> Result<Option<StoredCertificate>, RunError> {
        let read: Option<StoredCertificate> = files::read_json(path)?;
        match read {
            Some(read) if !read.certificate.deltas.are_valid() => {
                Err(RunError::about(path, "a delta is negative"))
            }
            read => Ok(read),
        }
    }

    /// What it says of a measurement under `kernel` by this version of haulage.
    pub fn badge(&self, kernel: &str, haulage_version: &str) -> Badge {
        let place = if self.subject.src == self.subject.dst {
            self.subject.dst.in_words()
        } else {
            format!("{} to {}", self.subject.src.in_words(), self.subject.dst.in_words())
        };
        let made = format!("{} on {} for {place}", self.made, self.subject.host);
        let mut changed = Vec::new();
        if self.kernel != kernel {
            changed.push(format!("under another kernel ({})", self.kernel));
        }
        if self.haulage_version != haulage_version {
            changed.push(format!("by haulage {}", self.haulage_version));
        }
        let passes = self.certificate.passes;
        let said =
            if passes { "certified" } else { "not certified: it failed the certification of" };
        let status = match (changed.is_empty(), passes) {
            (true, true) => CertificateStatus::Certified,
            (true, false) => CertificateStatus::Failed,
            (false, _) => CertificateStatus::Stale,
        };
        let words = match changed.join(" and ") {
            none if none.is_empty() => format!("{said} {made}"),
            changed => format!("certificate out of date: {said} {made}, {changed}"),
        };
        let deltas = self.certificate.deltas.larger(LEAST);
        let delta_from = if deltas == LEAST && self.certificate.same_distance_p95.is_none() {
            "the minimum; how far identical variants differ here was not measured closely enough"
        } else if deltas == LEAST {
            "the minimum; identical variants differed by less when this machine was certified"
        } else {
            "95 % of identical variants differed by at most this when this machine was certified"
        };
        Badge { status, words, deltas, delta_from: delta_from.to_owned() }
    }
}

impl Badge {
    /// The verdict on the cells of `run`, on this machine, with the findings of its analyses.
    /// `rounds` is the number that the user asked for.
    pub fn verdict(&self, run: &Run, cells: &[CellRun], rounds: Option<u32>) -> Verdict {
        let verdict = Verdict::of(&run.definition, cells, self.deltas, rounds);
        let verdict = verdict.analysed(run, rounds);
        let (delta_from, certificate) = (self.delta_from.clone(), self.words.clone());
        Verdict { delta_from, certificate, ..verdict }
    }

    /// Of a machine without a certificate.
    pub fn none() -> Badge {
        Badge {
            status: CertificateStatus::NotCertified,
            words: "not certified: haulage certify tests the protocol on this machine".to_owned(),
            deltas: LEAST,
            delta_from: "the minimum".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(passes: bool, delta: f64) -> StoredCertificate {
        let nothing = Certificate::from_cells(Vec::new(), (Some(delta), None), Vec::new());
        let deltas = Deltas { warm: delta, cold: delta };
        StoredCertificate {
            subject: Subject::of(Path::new("/"), Path::new("/")),
            made: "2026-01-31T12:00:00Z".to_owned(),
            kernel: "Linux 1".to_owned(),
            haulage_version: "1.0.0".to_owned(),
            seconds: 1.0,
            seed: 1,
            certificate: Certificate { passes, deltas, ..nothing },
        }
    }

    #[test]
    fn what_is_kept_is_found_for_its_subject_alone() {
        let home = tempfile::tempdir().expect("created");
        let kept = kept(true, 0.03);
        let dir = home.path().join("certificates");
        kept.keep(&dir).expect("kept");
        let found = StoredCertificate::find(&dir, &kept.subject).expect("found");
        let badge = found.badge("Linux 1", "1.0.0");
        assert_eq!((badge.status, badge.deltas.warm), (CertificateStatus::Certified, 0.03));
        assert_eq!(found, kept);
        let other = Subject { host: "other".to_owned(), ..kept.subject.clone() };
        assert_eq!(StoredCertificate::find(&dir, &other), None);
    }

    #[test]
    fn another_kernel_or_version_makes_it_stale() {
        use CertificateStatus::{Certified, Failed, Stale};
        for (passes, kernel, version, status, words) in [
            (true, "Linux 1", "1.0.0", Certified, "certified 2026-01-31"),
            (false, "Linux 1", "1.0.0", Failed, "not certified: it failed"),
            (true, "Linux 2", "1.0.0", Stale, "another kernel (Linux 1)"),
            (false, "Linux 1", "1.1.0", Stale, "by haulage 1.0.0"),
        ] {
            let badge = kept(passes, 0.02).badge(kernel, version);
            assert_eq!(badge.status, status, "{words}");
            assert!(badge.words.contains(words), "{} for {words}", badge.words);
        }
        assert_eq!(kept(true, 0.01).badge("Linux 1", "1.0.0").deltas, LEAST);
    }
}
