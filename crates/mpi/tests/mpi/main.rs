//! `mpirun haulage-mpi cp` with Open MPI: on this host, and on two hosts that are network namespaces.

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod hosts;
mod jobs;
mod output;
mod store;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tempfile::TempDir;
use testfs::stderr;

const PROGRAM: &str = env!("CARGO_BIN_EXE_haulage-mpi");

thread_local! {
    /// Where the jobs of a test have their sessions. mpirun removes the directory that sessions share if its own is the
    /// last, while another job may be about to use it.
    static SESSIONS: TempDir = tempfile::tempdir().expect("created");
}

/// mpirun with `options` of its own, in `dir`. It may run as root, and more ranks than processors.
fn mpirun(dir: &Path, ranks: usize, options: &[&str]) -> Command {
    let sessions = SESSIONS.with(|dir| dir.path().to_owned());
    let mut command = Command::new("mpirun");
    command
        .env("TMPDIR", &sessions)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // By default shared memory of killed ranks stays in /dev/shm. The second name is that of Open MPI 5.
        .env("OMPI_MCA_btl_vader_backing_directory", &sessions)
        .env("OMPI_MCA_btl_sm_backing_directory", &sessions)
        // Its default for small jobs gives each rank one processor.
        .args(["--oversubscribe", "--bind-to", "none"])
        .args(options)
        .args(["-n", &ranks.to_string()])
        .current_dir(dir);
    command
}

fn haulage(dir: &Path, ranks: usize, args: &[&str]) -> Command {
    let mut command = mpirun(dir, ranks, &[]);
    command.arg(PROGRAM).args(args);
    command
}

fn run(dir: &Path, ranks: usize, args: &[&str]) -> Output {
    haulage(dir, ranks, args).output().expect("mpirun ran")
}

/// Starts a copy that will be killed. What it says then is not looked at.
fn start_quietly(dir: &Path, ranks: usize, args: &[&str]) -> Child {
    let mut command = haulage(dir, ranks, args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mpirun started")
}

/// Waits until `is_so`, which must come before the job ends.
fn wait_during(job: &Child, is_so: impl Fn() -> bool) {
    let pid = WaitId::Pid(Pid::from_child(job));
    testfs::wait_until(|| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = waitid(pid.clone(), options).expect("a child");
        is_so() || ended.is_some_and(|ended| panic!("the job has ended: {ended:?}"))
    });
}

/// The lines of messages of `cp`, without what mpirun adds.
fn messages(output: &Output) -> Vec<String> {
    let text = stderr(output);
    // Lines of Open MPI may have "tcp: ".
    let is_message = |line: &&str| line.starts_with("cp: ") || line.contains("] cp: ");
    text.lines().filter(is_message).map(str::to_owned).collect()
}
