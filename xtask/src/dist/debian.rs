//! Writes the Debian packages of the library, by the tools of dpkg: cargo-deb writes no shlibs file, which packages
//! of programs need that are linked with the library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};

use super::build;
use super::checkout::Checkout;
use super::format::Format;
use super::library::{self, Files};
use super::stage::{self, Entry};

const CONTROL: &str = "packaging/libhaulage.control";

/// Writes both packages into `out`. Returns the directories of their stages, from the root of the checkout.
pub(super) fn write(
    checkout: &Checkout,
    files: &Files,
    out: &Path,
) -> anyhow::Result<[PathBuf; 2]> {
    let work = tempfile::tempdir().context("a directory for dpkg")?;
    let runtime = library::runtime_name(checkout, Format::Deb)?;
    let development = library::development_name(Format::Deb);
    // What debhelper would write there.
    let debian = work.path().join("debian");
    fs::create_dir(&debian)?;
    let control = String::from_utf8(checkout.read(CONTROL.as_ref())?).context(CONTROL)?;
    let control = control.replace("@RUNTIME@", &runtime);
    fs::write(debian.join("control"), control.replace("@MAINTAINER@", &checkout.maintainer()))?;
    fs::write(debian.join("changelog"), stage::debian_changes(checkout))?;
    let stages = [&runtime, development].map(|name| Format::Deb.stage_dir_of(name));
    let [runtime_stage, development_stage] = stages.each_ref().map(|dir| checkout.root().join(dir));
    stage::write(&files.runtime, &runtime_stage, checkout)?;
    stage::write(&files.development, &development_stage, checkout)?;

    let soname = build::soname(checkout)?;
    let shared = files.runtime.iter().find(|it| it.path.ends_with(&soname));
    let shared = runtime_stage.join(&shared.context("the shared library")?.path);
    dpkg(work.path(), Command::new("dpkg-shlibdeps").arg("-Tdebian/substvars").arg(shared))?;
    for (name, entries, dir) in [
        (runtime.as_str(), &files.runtime, &runtime_stage),
        (development, &files.development, &development_stage),
    ] {
        // dpkg adds what it reads there to the package.
        let meta = dir.join("DEBIAN");
        fs::create_dir(&meta)?;
        let mut gencontrol = Command::new("dpkg-gencontrol");
        gencontrol.arg(format!("-p{name}")).arg("-Tdebian/substvars").arg("-O");
        gencontrol.arg(format!("-P{}", dir.display()));
        fs::write(meta.join("control"), dpkg(work.path(), &mut gencontrol)?.stdout)?;
        fs::write(meta.join("md5sums"), md5_sums(entries, dir)?)?;
        if name == runtime {
            let (library, version) = soname.split_once(".so.").context("a soname")?;
            let needs = format!("{library} {version} {runtime} (>= {})\n", checkout.version());
            fs::write(meta.join("shlibs"), needs)?;
            fs::write(meta.join("triggers"), "activate-noawait ldconfig\n")?;
        }
        let mut deb = Command::new("dpkg-deb");
        deb.args(["--root-owner-group", "-Zxz", "--build"]).arg(dir).arg(out);
        deb.env("SOURCE_DATE_EPOCH", checkout.epoch_s().to_string());
        dpkg(work.path(), &mut deb)?;
    }
    Ok(stages)
}

/// What `dpkg --verify` compares installed files with.
fn md5_sums(entries: &[Entry], dir: &Path) -> anyhow::Result<Vec<u8>> {
    let files = entries.iter().map(|entry| &entry.path);
    let files = files.filter(|path| !dir.join(path).is_symlink());
    Ok(dpkg(dir, Command::new("md5sum").args(files))?.stdout)
}

fn dpkg(work: &Path, command: &mut Command) -> anyhow::Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.current_dir(work).env("LC_ALL", "C.UTF-8").output();
    let output = output.with_context(|| {
        format!("{name} cannot be started; the packages dpkg and dpkg-dev have Debian's tools")
    })?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}: {}", output.status, text.trim());
    Ok(output)
}
