//! `cargo xtask guest`: runs a command on one of Debian's kernels, in a virtual machine that has the files of this
//! one.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use kernel::{Kernel, Unpacked};
use xtask::command::{build_haulage, succeed};
use xtask::packages;

pub(crate) mod kernel;

/// How often the output of the guest is looked at.
const POLL: Duration = Duration::from_millis(50);

/// The lines of the console that are shown if a guest fails.
const CONSOLE_LINES: usize = 60;

/// Run a command on another kernel, as root, in a virtual machine that has the files of this one.
///
/// Prints what the command prints, and exits with its status. The guest sees the files of this machine at their
/// paths; what it changes is lost, but for the directories of --share. `haulage` is a debug build of this tree. The
/// processor is emulated: times mean nothing.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "cargo xtask guest", bin_name = "cargo xtask guest")]
pub(crate) struct Args {
    /// 5.10, 6.1, 6.12 or newest
    #[arg(value_name = "KERNEL", value_parser = kernel::find)]
    pub(crate) kernel: Kernel,
    /// Kill the guest after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) time: u64,
    /// A directory in which the guest may change files of this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) share: Vec<PathBuf>,
    /// Add an empty disk of this size, as 300M: /dev/vda is the first
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Vec<String>,
    /// Write to each disk at most this many bytes a second
    #[arg(long, value_name = "BYTES")]
    pub(crate) write_rate: Option<u64>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// Runs the command in a guest. Its exit code is that of the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let prepared = Prepared::new(args.kernel).context("no guest can run here")?;
    Ok(ExitCode::from(prepared.run(args, &mut io::stdout(), &mut io::stderr())?))
}

/// All that guests with one kernel need.
pub(crate) struct Prepared {
    cache: PathBuf,
    pub(crate) kernel: Unpacked,
    haulage: PathBuf,
}

impl Prepared {
    /// Installs and fetches what is missing.
    pub(crate) fn new(kernel: Kernel) -> anyhow::Result<Prepared> {
        ensure!(std::env::consts::ARCH == "x86_64", "the kernels are for x86_64");
        let is_root = rustix::process::geteuid().is_root();
        ensure!(is_root, "run as root: the host's files are the guest's");
        let has_apt = packages::is_found("apt-get");
        ensure!(has_apt, "without apt-get Debian's kernels cannot be fetched");
        packages::install_guest()?;
        let haulage = build_haulage()?;
        let target = haulage.parent().and_then(Path::parent).context("the target directory")?;
        let cache = target.join("guest");
        std::fs::create_dir_all(&cache)?;
        if let Err(why) = kernel::ksmbd_tools(&cache) {
            eprintln!("xtask: there will be no ksmbd: {why:#}");
        }
        Ok(Prepared { kernel: kernel.unpacked(&cache)?, cache, haulage })
    }

    /// Boots a guest, runs the command of `args` and passes its output on. Returns its exit status.
    ///
    /// # Errors
    /// If the guest does not boot, panics or does not end in time.
    pub(crate) fn run<'a>(
        &self,
        args: &Args,
        stdout: &'a mut dyn Write,
        stderr: &'a mut dyn Write,
    ) -> anyhow::Result<u8> {
        let dir = tempfile::Builder::new().prefix("run-").tempdir_in(&self.cache)?;
        std::fs::write(dir.path().join("session"), self.session(args)?)?;
        // A new file each: what the guest writes there is what comes out.
        let open = |name| {
            File::options().create_new(true).read(true).write(true).open(dir.path().join(name))
        };
        let mut streams = [(open("stdout")?, stdout), (open("stderr")?, stderr)];
        let mut machine = self.machine(args, &dir)?.spawn().context("qemu-system-x86_64")?;
        let ended = wait(&mut machine, Duration::from_secs(args.time), || pass_on(&mut streams));
        machine.kill()?;
        machine.wait()?;
        pass_on(&mut streams)?;
        let console = std::fs::read(dir.path().join("console")).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let why = match (ended?, std::fs::read_to_string(dir.path().join("status"))) {
            (None, _) => format!("was killed after {} s (--time)", args.time),
            (Some(_), Ok(status)) if !console.contains("Kernel panic") => {
                match status.trim().parse() {
                    Ok(status) => return Ok(status),
                    Err(_) => "did not say how the command ended".to_owned(),
                }
            }
            (Some(status), _) => format!("failed ({status})"),
        };
        bail!(
            "the guest with Linux {} {why}; its console:\n{}",
            self.kernel.release,
            last_lines(&console)
        )
    }

    /// The shell script that the guest's first process executes.
    fn session(&self, args: &Args) -> anyhow::Result<String> {
        let quoted = |path: &Path| shell_words::quote(&path.to_string_lossy()).into_owned();
        let mut script =
            format!("mount --bind {} /lib/modules\n", quoted(&self.kernel.path("lib/modules")));
        for (index, dir) in args.share.iter().enumerate() {
            let dir = quoted(&std::path::absolute(dir)?);
            let options = "trans=virtio,version=9p2000.L,msize=524288";
            script += &format!("mkdir -p {dir}; mount -t 9p -o {options} share{index} {dir}\n");
        }
        let programs = self.haulage.parent().expect("it has a name");
        let system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        script += &format!(
            "export HOME=/root HAULAGE_PROFILE= PATH={}:{system}:{}\ncd {}\nstatus=0\n\
            {} </dev/null >/run/guest/stdout 2>/run/guest/stderr || status=$?\n\
            echo $status >/run/guest/status\nexec busybox poweroff -nf\n",
            quoted(programs),
            quoted(&self.cache.join("ksmbd/usr/libexec")),
            quoted(&std::env::current_dir()?),
            shell_words::join(&args.command),
        );
        Ok(script)
    }

    /// The command that boots a guest whose run directory is `dir`.
    fn machine(&self, args: &Args, dir: &TempDir) -> anyhow::Result<Command> {
        // The guest ends with this process, however that ends.
        let mut machine = Command::new("setpriv");
        let options = "--pdeathsig KILL -- qemu-system-x86_64 -nodefaults -display none -no-reboot \
            -cpu max,tsc-deadline=off -smp 2 -m 3G -accel tcg,thread=multi -append";
        machine.args(options.split_whitespace());
        // On a busy host Linux measures a wrong frequency of the TSC, and then an hour is a minute. Mitigations of faults
        // that this processor does not have take a fifth of the time.
        let clock = "clocksource=hpet tsc=unstable no_timer_check";
        machine.arg(format!("console=ttyS0 quiet panic=-1 oops=panic mitigations=off {clock}"));
        machine.arg("-kernel").arg(self.kernel.path("vmlinuz"));
        machine.arg("-initrd").arg(self.kernel.path("initramfs"));
        machine.arg("-serial").arg(format!("file:{}", in_option(&dir.path().join("console"))));
        let mut pass = |tag: &str, path: &Path, options: &str| {
            let path = in_option(path);
            let passed = format!("local,mount_tag={tag},path={path},security_model=none{options}");
            machine.arg("-virtfs").arg(passed);
        };
        pass("root", Path::new("/"), ",readonly=on,multidevs=remap");
        pass("run", dir.path(), "");
        for (index, dir) in args.share.iter().enumerate() {
            pass(&format!("share{index}"), &std::path::absolute(dir)?, "");
        }
        for (index, size) in args.disk.iter().enumerate() {
            let disk = dir.path().join(format!("disk{index}"));
            succeed(Command::new("truncate").arg(format!("--size={size}")).arg(&disk))?;
            let rate = args.write_rate.map(|rate| format!(",throttling.bps-write={rate}"));
            let rate = rate.unwrap_or_default();
            let disk = format!("file={},if=virtio,format=raw,cache=unsafe{rate}", in_option(&disk));
            machine.arg("-drive").arg(disk);
        }
        machine.stdin(Stdio::null());
        Ok(machine)
    }
}

/// Calls `meanwhile` until `child` has ended. `None` if it runs longer than `limit`.
fn wait(
    child: &mut Child,
    limit: Duration,
    mut meanwhile: impl FnMut() -> io::Result<()>,
) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        meanwhile()?;
        std::thread::sleep(POLL);
    }
    Ok(None)
}

/// Copies what has been added to each file since the last call.
fn pass_on(streams: &mut [(File, &mut dyn Write)]) -> io::Result<()> {
    streams.iter_mut().try_for_each(|(from, to)| {
        io::copy(from, to)?;
        to.flush()
    })
}

/// A path in an option of qemu, in which a comma ends a value unless it is doubled.
fn in_option(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

fn last_lines(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn parse(words: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(std::iter::once("guest").chain(words.split(' ')))
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let args =
            parse("6.1 --time 9 --disk 1G --disk 300M --share /a -- sh -c true --time").unwrap();
        assert_eq!((args.kernel.name, args.time), ("6.1", 9));
        assert_eq!(args.disk, ["1G", "300M"]);
        assert_eq!(args.command, ["sh", "-c", "true", "--time"]);
        for wrong in ["6.1", "6.1 true", "6.18 -- true", "6.1 --time x -- true"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_end_of_a_long_console_is_shown() {
        let lines: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        assert_eq!(last_lines(&lines.join("\n")), lines[40..].join("\n"));
        assert_eq!(last_lines("1\n2"), "1\n2");
    }
}
