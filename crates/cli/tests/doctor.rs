//! `haulage doctor` as a user runs it: anywhere, by anyone, at any width.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use rustix::io::Errno;
use serde_json::Value;
use testfs::{FsKind, is_root, names_in, on_terminal, skip, stderr, stdout, test_name};

const PROGRAM: &str = env!("CARGO_BIN_EXE_haulage");

/// The nobody of most systems.
const ORDINARY_USER: u32 = 65_534;

fn doctor(args: &[&str], dir: &Path) -> Output {
    command().args(args).current_dir(dir).output().expect("haulage ran")
}

/// The command of a user who has no profile.
fn command() -> Command {
    let mut command = testfs::command(PROGRAM);
    command.arg("doctor").env_remove("HAULAGE_PROFILE").env("XDG_CONFIG_HOME", "/missing");
    command
}

fn json(args: &[&str], dir: &Path) -> Value {
    let output = doctor(&[&["--json"], args].concat(), dir);
    assert_eq!(stderr(&output), "");
    parsed(&output)
}

fn parsed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn verdict<'j>(found: &'j Value, engine: &str) -> &'j str {
    let all = found["engines"].as_array().expect("an array");
    let row = all.iter().find(|row| row["name"] == engine).expect("found");
    row["verdict"].as_str().expect("text")
}

fn advice(found: &Value) -> String {
    let all = found["advice"].as_array().expect("an array");
    all.iter().map(|line| line.as_str().expect("text")).collect::<Vec<_>>().join("\n")
}

#[test]
fn it_finds_what_each_file_system_has_and_leaves_nothing_behind() {
    testfs::each_fs(|kind, dir| {
        let found = json(&[], dir);
        assert_eq!(found["schema_version"], 1);
        for side in ["src", "dst"] {
            assert_eq!(found[side]["fs_type"], kind.name(), "{kind}");
            assert_eq!(found[side]["read_only"], false, "{kind}");
            assert_eq!(found[side]["not_writable"], Value::Null, "{kind}");
            let [free, total] = ["free_bytes", "total_bytes"].map(|key| found[side][key].as_u64());
            assert!(free > Some(0) && free <= total, "{kind}: {free:?} of {total:?}");
        }
        assert_eq!(verdict(&found, "read_write"), "yes", "{kind}");
        let reflink = if kind.reflinks() { "yes" } else { "no" };
        assert_eq!(verdict(&found, "reflink"), reflink, "{kind}");
        assert!(
            advice(&found).contains("three minutes: haulage tune ."),
            "{kind}: {}",
            advice(&found)
        );
        assert_eq!(names_in(dir), Vec::<String>::new(), "{kind}");
        check_choices(&found, kind);
    });
}

/// The choices are for all lengths, without a gap.
fn check_choices(found: &Value, kind: FsKind) {
    let choices = found["choices"].as_array().expect("an array");
    let mut end = Value::Null;
    for choice in choices {
        assert_eq!(choice["over_bytes"], end, "{kind}: {choices:?}");
        end = choice["up_to_bytes"].clone();
        for variant in ["cached", "not_cached"] {
            let text = choice[variant].as_str().expect("text");
            assert!(text.parse::<engines::Variant>().is_ok(), "{kind}: {text}");
        }
    }
    assert_eq!(end, Value::Null, "{kind}: {choices:?}");
}

#[test]
fn a_measured_profile_decides_and_a_stale_one_is_reported() {
    let dir = tempfile::tempdir().expect("created");
    let profile = dir.path().join("profile.toml");
    let run = || {
        let mut command = Command::new(PROGRAM);
        command.args(["doctor", "--json"]).current_dir(dir.path()).env("HAULAGE_PROFILE", &profile);
        parsed(&command.output().expect("haulage ran"))
    };
    let missing = run();
    assert_eq!(missing["profile"]["problems"][0], "it does not exist");

    let pair = "version = 1\n[[machine]]\n[[machine.pair]]\n";
    let line = "[[machine.pair.choice]]\nvariant = \"sendfile\"\ndate = \"2026-01-31T12:00:00Z\"\n";
    std::fs::write(&profile, format!("{pair}{line}")).expect("written");
    let measured = run();
    assert_eq!(measured["choices"].as_array().map(Vec::len), Some(1), "{measured}");
    assert_eq!(measured["choices"][0]["cached"], "sendfile");
    assert_eq!(measured["profile"]["applies"], true);
    assert_eq!(measured["profile"]["measured"], "2026-01-31T12:00:00Z");
    assert!(!advice(&measured).contains("tune"), "{}", advice(&measured));

    std::fs::write(&profile, format!("{pair}kernel = \"5.4.0\"\n{line}")).expect("written");
    let stale = advice(&run());
    assert!(stale.contains("are stale: the kernel was 5.4.0 then and is "), "{stale}");

    std::fs::write(&profile, "version = 1\nnonsense\n").expect("written");
    let wrong = advice(&run());
    assert!(wrong.contains("is not used as it is: line 2: "), "{wrong}");
}

#[test]
fn a_full_file_system_is_no_obstacle() {
    for kind in FsKind::ALL {
        let Some(fs) = testfs::small_fs(kind) else { continue };
        let dir = fs.join("");
        let mut rest = File::create(fs.join("rest")).expect("created");
        fs.leave_room(0);
        // btrfs keeps a rest for data that is allocated late.
        while rest.write_all(&[1; 4096]).is_ok() {}
        let before = names_in(&dir);
        let found = json(&[], &dir);
        let text = advice(&found);
        assert!(
            text.contains("is full") || text.contains("No file can be written"),
            "{kind}: {text}"
        );
        assert_eq!(verdict(&found, "read_write"), "yes", "{kind}: in memory");
        assert_eq!(verdict(&found, "reflink"), "unknown", "{kind}");
        assert_eq!(names_in(&dir), before, "{kind}");
    }
}

#[test]
fn a_read_only_mount_is_no_obstacle() {
    if !is_root() {
        return skip(&test_name(), "mounting requires root");
    }
    let dir = tempfile::tempdir().expect("created");
    let script = "mount -t tmpfs -o ro haulage \"$1\" && cd \"$1\" && \"$2\" doctor --json";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
    let output = unshare.arg(dir.path()).arg(PROGRAM).env("HAULAGE_PROFILE", "").output();
    let output = output.expect("unshare runs");
    if stderr(&output).contains("ermission") || stderr(&output).contains("not permitted") {
        return skip(&test_name(), &stderr(&output));
    }
    let found = parsed(&output);
    assert_eq!(found["dst"]["read_only"], true);
    assert!(advice(&found).contains("'.' is mounted read-only"), "{}", advice(&found));
    assert_eq!(verdict(&found, "splice"), "yes");
    assert_eq!(verdict(&found, "reflink"), "unknown");
}

#[test]
fn an_ordinary_user_without_a_home_runs_it() {
    if !is_root() {
        return skip(&test_name(), "only root can become another user");
    }
    let dir = tempfile::tempdir().expect("created");
    // Others may look, and not write.
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("mode set");
    let program = dir.path().join("haulage");
    testfs::copy_program(PROGRAM, &program);
    let run = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("doctor").args(args).env_clear().current_dir(dir.path());
        command.uid(ORDINARY_USER).gid(ORDINARY_USER).output().expect("haulage ran")
    };
    let found = parsed(&run(&["--json"]));
    assert_eq!(found["profile"]["path"], Value::Null);
    assert!(advice(&found).contains("neither XDG_CONFIG_HOME nor HOME is"), "{}", advice(&found));
    let why = found["dst"]["not_writable"].as_str().expect("a reason");
    assert!(why.ends_with("Permission denied"), "{why}");
    assert!(advice(&found).contains("No file can be written in '.'"), "{}", advice(&found));
    let text = stdout(&run(&[]));
    assert!(text.contains("\na copy     within "), "{text}");
    assert_eq!(names_in(dir.path()), ["haulage"]);
}

#[test]
fn it_is_one_screen() {
    let dir = tempfile::tempdir().expect("created");
    for columns in [80, 200] {
        let mut command = command();
        command.current_dir(dir.path());
        let (_, text) = on_terminal(command, columns);
        assert!(text.contains("in the page cache"), "{text}");
        assert!(text.lines().count() <= 40, "{text}");
    }
}

#[test]
fn two_directories_and_mistakes() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir(dir.path().join("with a blank")).expect("created");
    let found = json(&["/dev/shm", "with a blank"], dir.path());
    assert_eq!(found["src"]["path"], "/dev/shm");
    let text = advice(&found);
    assert!(text.contains("three minutes: haulage tune /dev/shm 'with a blank'"), "{text}");
    for (line, status, message) in [
        ("missing", 1, "cannot open the directory 'missing': No such file or directory"),
        (PROGRAM, 1, "Not a directory"),
        ("a b c", 2, "unexpected value 'c' for '[DIR]...' found"),
        ("--colour", 2, "unexpected argument '--colour' found"),
    ] {
        let output = doctor(&line.split(' ').collect::<Vec<_>>(), dir.path());
        testfs::assert_refused(line, &output, status, "haulage doctor: ", message);
    }
}

#[test]
fn the_fields_are_described() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
    let document = std::fs::read_to_string(document).expect("read");
    let dir = tempfile::tempdir().expect("created");
    let found = json(&[], dir.path());
    for (name, value) in found.as_object().expect("an object") {
        let inner = match value {
            Value::Object(fields) => fields.keys().collect(),
            Value::Array(all) => all
                .first()
                .and_then(Value::as_object)
                .map(|it| it.keys().collect())
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        assert!(document.contains(&format!("`{name}")), "{name}");
        for field in inner.into_iter().filter(|_| name != "limits") {
            let named = [format!("`{field}`"), format!(".{field}`"), format!(".{field}[]`")];
            assert!(named.iter().any(|it| document.contains(it)), "{name}: {field}");
        }
    }
}

/// Runs a command under a seccomp filter that answers the calls of numbers 425 and 451 with an errno:
/// io_uring_setup(2) and cachestat(2), on every architecture but alpha.
const FILTERED: &str = r#"
import ctypes, os, struct, sys
step = lambda code, yes, no, value: struct.pack("HBBI", code, yes, no, value)
program = b"".join([
    step(0x20, 0, 0, 0),                                 # the number of the call
    step(0x15, 2, 0, 425),
    step(0x15, 1, 0, 451),
    step(0x06, 0, 0, 0x7FFF0000),                        # SECCOMP_RET_ALLOW
    step(0x06, 0, 0, 0x00050000 | int(sys.argv[1])),     # SECCOMP_RET_ERRNO
])
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0                   # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, ctypes.byref(Program(5, program)), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
"#;

#[test]
fn a_seccomp_filter_is_told_and_copies_go_on() {
    let home = tempfile::tempdir().expect("created");
    std::fs::write(home.path().join("a"), testfs::random_bytes(3_000_000, 1)).expect("written");
    let run = |errno: Errno, args: &[&str]| {
        let mut command = testfs::command("python3");
        command.args(["-c", FILTERED, &errno.raw_os_error().to_string(), PROGRAM]).args(args);
        command.current_dir(home.path()).env_remove("HAULAGE_PROFILE").output()
    };
    for errno in [Errno::PERM, Errno::NOSYS] {
        let output = match run(errno, &["doctor", "--json"]) {
            Ok(output) => output,
            Err(why) => return skip(&test_name(), &format!("python3: {why}")),
        };
        let found = parsed(&output);
        for engine in ["io_uring", "direct_read"] {
            assert_eq!(verdict(&found, engine), "no", "{errno}");
        }
        assert_eq!(verdict(&found, "read_write"), "yes", "{errno}");
        for call in ["io_uring", "cachestat"] {
            let calls = found["kernel"]["calls"].as_array().expect("an array");
            let call = calls.iter().find(|it| it["name"] == call).expect("found");
            let reason = call["reason"].as_str().unwrap_or_default();
            assert!(
                call["found"] == false && reason.contains("a seccomp filter"),
                "{errno}: {call}"
            );
        }
        assert!(advice(&found).contains("There is no io_uring: "), "{errno}: {found}");

        let copy =
            run(errno, &["cp", "--engine=io_uring", "--verify", "a", "b"]).expect("python3 ran");
        assert!(copy.status.success(), "{}", stderr(&copy));
        assert_eq!(std::fs::read(home.path().join("b")).expect("read").len(), 3_000_000);
        let line = "race a . --engines io_uring,read_write:64K --rounds 1 --json race.json";
        let race = run(errno, &line.split(' ').collect::<Vec<_>>()).expect("python3 ran");
        assert!(race.status.success(), "{}", stderr(&race));
    }
    assert_eq!(names_in(home.path()), ["a", "b", "race.json"]);
}
