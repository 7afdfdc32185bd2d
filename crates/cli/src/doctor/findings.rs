//! All that the doctor finds, as `--json` prints it.

use std::path::Path;

use serde::Serialize;

use super::choices::{self, Choice, ProfileFound};
use super::limits::Limits;
use super::place::{Place, engines_between};
use crate::kernel::{self, Call};
use crate::sample_files::EngineFound;
use crate::version;

/// The version of the form of `--json`. It changes when a field changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema_version: u32,
    pub(super) haulage: Program,
    pub(super) machine: Machine,
    pub(super) kernel: Kernel,
    pub(super) limits: Limits,
    pub(super) src: Place,
    pub(super) dst: Place,
    pub(super) engines: Vec<EngineFound>,
    /// `ext4 /data to xfs /backup`, or `within ext4 /data`.
    pub(super) between: String,
    pub(super) choices: Vec<Choice>,
    pub(super) profile: ProfileFound,
    /// What would be better, the most important first.
    pub(super) advice: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Program {
    pub(super) version: &'static str,
    pub(super) commit: Option<&'static str>,
    pub(super) profile: &'static str,
    pub(super) target: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cpu_model: Option<String>,
    /// Processors that this process may use.
    pub(super) cpu_count: usize,
    pub(super) memory_bytes: u64,
    /// As it names itself.
    pub(super) hypervisor: Option<String>,
    pub(super) libc: &'static str,
    pub(super) libc_version: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) arch: &'static str,
    pub(super) calls: Vec<Call>,
}

impl Findings {
    /// For copies from the directory `src` to the directory `dst`, without advice.
    ///
    /// # Errors
    /// If one of them cannot be opened.
    pub(super) fn between(src: &Path, dst: &Path) -> anyhow::Result<Findings> {
        let (src_place, dst_place) = (Place::of(src)?, Place::of(dst)?);
        let engines = engines_between(src, dst);
        let (between, choices, profile) = choices::between(src, dst, &engines)?;
        Ok(Findings {
            schema_version: SCHEMA_VERSION,
            haulage: Program {
                version: version::VERSION,
                commit: version::COMMIT,
                profile: version::BUILD_PROFILE,
                target: version::TARGET,
            },
            machine: Machine::this(),
            kernel: Kernel::this(),
            limits: Limits::of_process(),
            src: src_place,
            dst: dst_place,
            engines,
            between,
            choices,
            profile,
            advice: Vec::new(),
        })
    }

    /// The verdict on the engine `name`.
    pub(super) fn engine(&self, name: &str) -> Option<&EngineFound> {
        self.engines.iter().find(|engine| engine.name == name)
    }

    /// Whether both directories are the same.
    pub(super) fn is_one_place(&self) -> bool {
        self.src.path == self.dst.path
    }
}

impl Machine {
    fn this() -> Machine {
        Machine {
            cpu_model: engines::profile::cpu_model(),
            cpu_count: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: lab::environment::memory_bytes(),
            hypervisor: sys::hypervisor(),
            libc: if cfg!(target_env = "musl") { "musl" } else { "glibc" },
            libc_version: sys::libc_version(),
        }
    }
}

impl Kernel {
    fn this() -> Kernel {
        Kernel { release: kernel::release(), arch: std::env::consts::ARCH, calls: kernel::calls() }
    }
}
