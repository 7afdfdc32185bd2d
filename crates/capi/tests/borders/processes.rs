//! Hazards of the process that copies.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use crate::border::{Border, What};

/// The process of [`Border::program`]: it copies once, and exits with the errno.
#[test]
fn driver() {
    if let Some((border, what, src, dst)) = Border::of_process() {
        std::process::exit(border.copy(what, &src, &dst));
    }
}

/// Runs `program` by a shell that has executed `limits` first.
fn limited(limits: &str, program: &Command) -> ExitStatus {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits}\nexec \"$@\""), "sh"]).arg(program.get_program());
    shell.args(program.get_args());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.status().expect("a shell ran")
}

#[test]
fn a_limit_of_the_process_is_an_error_and_closed_streams_are_borne() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    let bytes = testfs::random_bytes(1 << 20, 1);
    fs::create_dir(at("src")).expect("created");
    for number in 0..50 {
        fs::write(at("src").join(number.to_string()), &bytes[..number * 2000]).expect("written");
    }
    fs::write(at("src/large"), &bytes).expect("written");
    for border in Border::all() {
        let check = |limits: &str, what: What, expected: Option<i32>| {
            let _ = fs::remove_dir_all(at("dst"));
            fs::create_dir(at("dst")).expect("created");
            let (src, dst) = match what {
                What::File => (at("src/large"), at("dst/large")),
                What::Tree => (at("src"), at("dst")),
            };
            let ended = limited(limits, &border.program(what, &src, &dst));
            assert_eq!(ended.code(), expected, "{border:?}, {what:?}, {limits}: {ended}");
            let found = fs::read(at("dst/large")).unwrap_or_default();
            assert!(bytes.starts_with(&found), "{border:?}, {limits}: no byte is wrong");
            assert!(expected != Some(0) || found == bytes, "{border:?}, {limits}: it is whole");
            if expected.is_none() {
                assert_eq!(ended.signal(), Some(libc::SIGXFSZ), "{border:?}, {what:?}, {limits}");
            }
        };
        for what in [What::File, What::Tree] {
            // 256 KiB, in blocks of 512 bytes.
            check("trap '' XFSZ; ulimit -f 512", what, Some(libc::EFBIG));
            check("exec <&-", what, Some(0));
            check("exec <&- >&- 2>&-", what, Some(0));
            // Few descriptors: what the interpreter or the harness has, and some for the copy.
            check("ulimit -n 24", what, Some(0));
        }
        if border != Border::Python {
            // The interpreter ignores the signal.
            check("ulimit -f 512", What::File, None);
        }
    }
}
