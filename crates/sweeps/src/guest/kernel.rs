//! Debian's kernels: fetched once, and unpacked below `target/guest/` with the initramfs that starts them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use xtask::command::{output, succeed};

/// A kernel that guests boot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    /// On the command line.
    pub(crate) name: &'static str,
    /// The suite of Debian whose package `linux-image-amd64` is that kernel.
    suite: &'static str,
}

pub(crate) const KERNELS: &[Kernel] = &[
    Kernel { name: "5.10", suite: "bullseye" },
    Kernel { name: "6.1", suite: "bookworm" },
    Kernel { name: "6.12", suite: "trixie" },
    Kernel { name: "newest", suite: "sid" },
];

/// What `init` needs before the host's files are there, and with them the modules.
const MODULES: &[&str] = &["virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "overlay"];

const INIT: &str = include_str!("init");

/// An unpacked kernel.
#[derive(Debug)]
pub(crate) struct Unpacked {
    dir: PathBuf,
    /// As uname(2) has it.
    pub(crate) release: String,
}

impl Unpacked {
    /// The path of `vmlinuz`, `initramfs` or `lib/modules`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The kernel called `name`.
pub(crate) fn find(name: &str) -> anyhow::Result<Kernel> {
    let known = KERNELS.iter().find(|kernel| kernel.name == name).copied();
    let names = KERNELS.iter().map(|kernel| kernel.name);
    known.with_context(|| format!("the kernels are {}", names.collect::<Vec<_>>().join(", ")))
}

impl Kernel {
    /// The kernel in `cache`, fetched if it is not there.
    pub(crate) fn unpacked(self, cache: &Path) -> anyhow::Result<Unpacked> {
        let dir = in_cache(cache, self.suite, |work| self.fetch(work))?;
        let release = std::fs::read_to_string(dir.join("release")).context("the cached kernel")?;
        Ok(Unpacked { dir, release })
    }

    /// Fetches and unpacks the kernel into the directory of its suite's name in `work`.
    fn fetch(self, work: &Path) -> anyhow::Result<()> {
        let apt = Apt::new(work, self.suite)?;
        let packages = apt.kernel_packages()?;
        let release = packages.iter().find_map(|name| name.strip_prefix("linux-image-"));
        let release = release.context("its package depends on no image")?;
        succeed(apt.command("apt-get").args(["--quiet=2", "download"]).args(&packages))?;
        let dir = work.join(self.suite);
        unpack(work, &dir)?;
        // Newer packages have all in usr/lib/modules/RELEASE.
        if !dir.join("lib/modules").exists() {
            std::fs::create_dir_all(dir.join("lib"))?;
            std::fs::rename(dir.join("usr/lib/modules"), dir.join("lib/modules"))?;
        }
        let modules = dir.join("lib/modules").join(release);
        let images = [dir.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
        let image = images.iter().find(|image| image.exists());
        std::fs::copy(image.context("no image in the package")?, dir.join("vmlinuz"))?;
        // depmod warns that newer packages have no list of what is built in.
        succeed(Command::new("depmod").arg("-b").arg(&dir).arg(release).stderr(Stdio::null()))?;
        make_initramfs(&dir, release)?;
        Ok(std::fs::write(dir.join("release"), release)?)
    }
}

/// The newest programs for ksmbd, the server of SMB in the kernel, with their libraries, unpacked in `cache`. The newest
/// kernel refuses those of Debian 12, and they conflict with Samba.
pub(crate) fn ksmbd_tools(cache: &Path) -> anyhow::Result<PathBuf> {
    in_cache(cache, "ksmbd", |work| {
        let options = "--quiet=2 --yes --no-install-recommends --download-only install ksmbd-tools";
        let apt = Apt::new(work, find("newest")?.suite)?;
        succeed(apt.command("apt-get").args(options.split(' ')))?;
        unpack(&work.join("cache/archives"), &work.join("ksmbd"))
    })
}

/// The directory `name` in `cache`. If it is not there, `fetch` makes it in a directory of its own.
fn in_cache(
    cache: &Path,
    name: &str,
    fetch: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let dir = cache.join(name);
    if !dir.exists() {
        eprintln!("xtask: fetching {}", dir.display());
        let fresh = tempfile::tempdir_in(cache)?;
        fetch(fresh.path()).with_context(|| dir.display().to_string())?;
        // Another process may have been faster. What it has fetched is as good.
        if let Err(error) = std::fs::rename(fresh.path().join(name), &dir) {
            ensure!(dir.exists(), "{}: {error}", dir.display());
        }
    }
    Ok(dir)
}

/// Unpacks the packages in the directory `packages` into the new directory `dir`.
fn unpack(packages: &Path, dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(dir)?;
    let unpack = "for package in *.deb; do dpkg-deb --extract $package \"$0\" || exit; done";
    succeed(Command::new("sh").args(["-c", unpack]).arg(dir).current_dir(packages))
}

/// apt with package lists, caches and sources of its own, for one suite.
struct Apt<'a> {
    work: &'a Path,
}

impl Apt<'_> {
    fn new<'a>(work: &'a Path, suite: &str) -> anyhow::Result<Apt<'a>> {
        let format = "$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)";
        let sources = output(Command::new("apt-get").args(["indextargets", "--format", format]))?;
        let mirror = mirror(&sources).context("apt has no source of Debian's main component")?;
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let source = format!("deb [signed-by={keys}] {mirror} {suite} main\n");
        for dir in ["state/lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(work.join(dir))?;
        }
        std::fs::write(work.join("sources.list"), source)?;
        let apt = Apt { work };
        succeed(apt.command("apt-get").args(["--quiet=2", "update"]))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.work);
        let dirs = [("State", "state"), ("Cache", "cache"), ("Etc::SourceList", "sources.list")];
        for (option, path) in dirs {
            command.arg(format!("-oDir::{option}={}", self.work.join(path).display()));
        }
        for option in ["Etc::SourceParts", "Etc::Preferences", "Etc::PreferencesParts"] {
            command.arg(format!("-oDir::{option}=/dev/null"));
        }
        // Nothing counts as installed. The user _apt may not write below target/.
        command.args(["-oDir::State::Status=/dev/null", "-oAPT::Sandbox::User=root"]);
        // A list that could not be fetched is an error, and not a warning.
        command.args(["-oAPT::Update::Error-Mode=any", "-oAcquire::Retries=3"]);
        command
    }

    /// The packages of the kernel. Newer suites have image and modules in two that its package depends on.
    fn kernel_packages(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let mut open = vec!["linux-image-amd64".to_owned()];
        while let Some(name) = open.pop() {
            let shown =
                output(self.command("apt-cache").args(["show", "--no-all-versions", &name]))?;
            open.extend(kernel_dependencies(&shown).filter(|name| found.insert(name.clone())));
        }
        Ok(found)
    }
}

/// The mirror of Debian in lines `ORIGIN LABEL COMPONENT URI`. The label of security updates is another.
fn mirror(sources: &str) -> Option<&str> {
    sources.lines().find_map(|line| line.strip_prefix("Debian Debian main "))
}

/// The packages with parts of a kernel among what a package depends on, as `apt-cache show` prints it.
fn kernel_dependencies(shown: &str) -> impl Iterator<Item = String> {
    let depends = shown.lines().find_map(|line| line.strip_prefix("Depends: ")).unwrap_or_default();
    depends.split([',', '|']).filter_map(|item| item.split_whitespace().next()).filter_map(|name| {
        let parts = ["linux-image-", "linux-binary-", "linux-modules-"];
        parts.iter().any(|part| name.starts_with(part)).then(|| name.to_owned())
    })
}

/// Packs busybox, the modules that `init` needs in the order in which they load, and `init`.
fn make_initramfs(dir: &Path, release: &str) -> anyhow::Result<()> {
    let root = dir.join("initramfs.d");
    std::fs::create_dir_all(root.join("modules"))?;
    std::fs::create_dir(root.join("bin"))?;
    std::fs::copy("/bin/busybox", root.join("bin/busybox"))?;
    let mut order = String::new();
    for module in MODULES {
        // Without that list modprobe does not find what is built in. `init` says what is missing.
        let mut modprobe = Command::new("modprobe");
        modprobe.arg("-d").arg(dir).args(["-S", release, "--show-depends", module]);
        let shown = modprobe.output().context("modprobe")?.stdout;
        for path in insmod_paths(&String::from_utf8(shown)?) {
            let name = path.file_stem().and_then(OsStr::to_str).context("a module's name")?;
            let name = name.trim_end_matches(".ko").to_owned();
            if order.lines().any(|known| known == name) {
                continue;
            }
            let plain = std::fs::File::create(root.join("modules").join(&name))?;
            // It unpacks what xz and gzip have packed too, and copies what is not packed.
            succeed(Command::new("zstd").arg("-dcf").arg(path).stdout(plain))?;
            order.push_str(&format!("{name}\n"));
        }
    }
    std::fs::write(root.join("modules/order"), order)?;
    std::fs::write(root.join("init"), INIT)?;
    let pack = "chmod 755 init && find . | cpio --quiet -o -H newc | gzip -1 > ../initramfs";
    succeed(Command::new("sh").args(["-c", pack]).current_dir(&root))?;
    Ok(std::fs::remove_dir_all(root)?)
}

/// The files of modules, in the order in which they have to be loaded, as `modprobe --show-depends` prints them.
fn insmod_paths(shown: &str) -> impl Iterator<Item = &Path> {
    shown.lines().filter_map(|line| line.strip_prefix("insmod ")).map(|path| Path::new(path.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_the_main_archive() {
        let sources = "cloud cloud main https://other/apt/\n\
            Debian Debian-Security main http://mirror/debian-security/\n\
            Debian Debian contrib http://mirror/contrib/\n\
            Debian Debian main http://mirror/debian/\n";
        assert_eq!(mirror(sources), Some("http://mirror/debian/"));
        assert_eq!(mirror("Ubuntu Ubuntu main http://mirror/ubuntu/\n"), None);
    }

    #[test]
    fn the_parts_of_a_kernel_are_what_its_package_depends_on() {
        let old = "Package: linux-image-amd64\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n";
        assert!(kernel_dependencies(old).eq(["linux-image-6.1.0-56-amd64"]));
        let new = "Depends: linux-binary-7.2-amd64 (= 7.2), linux-modules-7.2-amd64, kmod, \
            initramfs-tools | linux-initramfs-tool\n";
        assert!(kernel_dependencies(new).eq(["linux-binary-7.2-amd64", "linux-modules-7.2-amd64"]));
    }

    #[test]
    fn modules_load_after_those_that_they_need() {
        let shown = "insmod /m/virtio.ko.xz \nbuiltin netfs\ninsmod /m/fs/9p/9p.ko.xz \n";
        let paths: Vec<_> = insmod_paths(shown).collect();
        assert_eq!(paths, [Path::new("/m/virtio.ko.xz"), Path::new("/m/fs/9p/9p.ko.xz")]);
    }
}
