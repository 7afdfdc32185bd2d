//! The profile: shown, imported, exported and changed.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use engines::profile::{FileSystem, Machine, PairChoices, Profile};
use lab::tune::record::Records;
use testfs::{names_in, stderr, stdout};

use crate::{Home, text};

#[test]
fn changes_since_the_measurement_are_shown() {
    let home = Home::new();
    let mut profile = two_machines(&home.work());
    let shown_with = |profile: &Profile| {
        profile.write(&home.profile()).expect("written");
        stdout(&home.tune(&["--show"]))
    };
    let unchanged = shown_with(&profile);
    assert!(unchanged.contains("mmap:8M") && !unchanged.contains("stale"), "{unchanged}");
    let pairs = profile.machines.iter_mut().flat_map(|machine| &mut machine.pairs);
    for pair in pairs {
        pair.kernel = Some(String::from("2.6.32"));
        pair.dst.options = Some(String::from("rw,before"));
        pair.src.options = pair.dst.options.clone();
    }
    let changed = shown_with(&profile);
    assert_eq!(changed.matches("  stale: the kernel was 2.6.32 then and is ").count(), 2);
    // A file system that is not mounted has no other change.
    assert_eq!(changed.matches("  stale: the options of ").count(), 1, "{changed}");
}

fn file_system(dir: &Path) -> FileSystem {
    FileSystem::of(fs::File::open(dir).expect("opened").as_fd())
}

/// A profile of another machine, and of this one on the file system of `dir`.
fn two_machines(dir: &Path) -> Profile {
    let found = file_system(dir);
    let line = |variant: &str| {
        let choice = engines::profile::Choice { variant: variant.to_owned(), ..Default::default() };
        engines::profile::Line { choice, ..Default::default() }
    };
    let pair = |fs: &FileSystem, variant: &str| PairChoices {
        src: fs.clone(),
        dst: fs.clone(),
        same: Some(true),
        lines: vec![line(variant)],
        ..PairChoices::default()
    };
    let elsewhere = FileSystem {
        fs_type: Some("xfs".into()),
        mount_point: Some("/far".into()),
        ..Default::default()
    };
    let other =
        Machine { id: Some("0123456789abcdef".into()), host: Some("far".into()), cpu: None };
    let mut profile = Profile::default();
    profile.enter(&other, pair(&elsewhere, "splice"));
    profile.enter(&Machine::this(), pair(&elsewhere, "sendfile"));
    profile.enter(&Machine::this(), pair(&found, "mmap:8M"));
    profile
}

#[test]
fn a_record_for_others_has_no_names_of_the_machine() {
    let home = Home::new();
    let work = home.work();
    let file = home.dir.path().join("record.json");
    // The time may be too short for an answer, and the record tells that too.
    home.tune(&[text(&work), "--time", "4", "--seed", "5", "--export", text(&file)]);
    let written = fs::read(&file).expect("written");
    let records = Records::parse(&written).expect("parsed");
    let [record] = records.pairs.as_slice() else { panic!("one pair: {records:?}") };
    // It has none of the names that an export leaves out.
    assert_eq!(record.environment, record.clone().exported().environment);
    assert!(!String::from_utf8_lossy(&written).contains(text(&work)));
    let environment = &record.environment;
    assert!(environment["cpu_count"].is_number() && environment["kernel"].is_string());
    assert_eq!(environment["seed"], 5);
    let variants = || record.situations.iter().flat_map(|finding| &finding.variants);
    assert!(variants().all(|it| it.rounds_ns.is_empty() && it.elimination_ns.is_empty()));
}

#[test]
fn a_profile_is_exported_imported_and_forgotten() {
    let (from, to) = (Home::new(), Home::new());
    let work = to.work();
    let mut profile = two_machines(&work);
    // A choice for all file systems is not forgotten with one.
    let any = PairChoices { same: Some(false), ..PairChoices::default() };
    profile.enter(&Machine::this(), any);
    profile.write(&from.profile()).expect("written");
    let file = from.dir.path().join("exported.toml");
    let exported = from.tune(&["--export", text(&file)]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    assert_eq!(stdout(&from.tune(&["--export"])), fs::read_to_string(&file).expect("read"));

    let imported = to.tune(&["--import", text(&file)]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    assert!(stdout(&imported).starts_with("4 pairs of file systems imported"));
    let read = || to.read_profile();
    let variants = |profile: &Profile| -> Vec<String> {
        let pairs = profile.machines.iter().flat_map(|machine| &machine.pairs);
        let mut all: Vec<String> =
            pairs.flat_map(|pair| &pair.lines).map(|line| line.choice.variant.clone()).collect();
        all.sort();
        all
    };
    assert_eq!(variants(&read()), ["mmap:8M", "sendfile", "splice"]);
    let shown = stdout(&to.tune(&["--show"]));
    for expected in ["mmap:8M", "sendfile", "far, another machine: 1 pair"] {
        assert!(shown.contains(expected), "{expected} in\n{shown}");
    }
    // A second import changes nothing.
    assert!(to.tune(&["--import", text(&file)]).status.success());
    assert_eq!(variants(&read()), ["mmap:8M", "sendfile", "splice"]);

    let forgotten = to.tune(&["--forget", text(&work)]);
    assert_eq!(stdout(&forgotten), "1 pair of file systems forgotten\n", "{}", stderr(&forgotten));
    assert_eq!(variants(&read()), ["sendfile", "splice"]);
    assert_eq!(stdout(&to.tune(&["--forget"])), "2 pairs of file systems forgotten\n");
    assert_eq!(variants(&read()), ["splice"], "another machine's stays");
    assert_eq!(stdout(&to.tune(&["--forget"])), "0 pairs of file systems forgotten\n");
}

#[test]
fn concurrent_changes_are_not_lost() {
    const SEVERAL: usize = 12;
    let home = Home::new();
    let children: Vec<_> = (0..SEVERAL)
        .map(|number| {
            let file = home.dir.path().join(format!("{number}.toml"));
            let pair = format!("src = {{ type = \"ext4\", mount_point = \"/{number}\" }}");
            let choice = "[[machine.pair.choice]]\nvariant = \"splice\"";
            let whole = format!("version = 1\n[[machine]]\n[[machine.pair]]\n{pair}\n{choice}\n");
            fs::write(&file, whole).expect("written");
            let mut command = home.command(&["tune", "--import", text(&file)]);
            command.stdout(Stdio::null()).spawn().expect("haulage started")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("ended").success());
    }
    assert_eq!(home.read_profile().machines[0].pairs.len(), SEVERAL);
    let beside = names_in(home.profile().parent().expect("a directory"));
    assert_eq!(beside, ["profile.toml"], "nothing is left beside it");
}

#[test]
fn the_text_of_a_user_is_kept() {
    let home = Home::new();
    fs::create_dir_all(home.profile().parent().expect("a directory")).expect("made");
    let own = "version = 1\n\n# The archive, by hand.\n[[machine]] # any\n[[machine.pair]]\n\
               src = { type = \"xfs\" }\n[[machine.pair.choice]]\nvariant = 'splice' # see notes\n";
    fs::write(home.profile(), own).expect("written");
    let other = Home::new();
    two_machines(&other.work()).write(&other.profile()).expect("written");
    let imported = home.tune(&["--import", text(&other.profile())]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    let after = fs::read_to_string(home.profile()).expect("read");
    let (head, tail) = own.split_once("\n\n").expect("two parts");
    assert!(after.starts_with(head) && after.ends_with(tail), "{after}");
    assert_eq!(home.read_profile().machines.len(), 3, "{after}");
    // After --forget the text of the user is the same, byte by byte.
    assert!(home.tune(&["--forget"]).status.success());
    let forgotten = fs::read_to_string(home.profile()).expect("read");
    assert!(forgotten.ends_with(tail) && !forgotten.contains("mmap:8M"), "{forgotten}");
}

#[test]
fn a_damaged_profile_is_not_overwritten() {
    let home = Home::new();
    let work = home.work();
    fs::create_dir_all(home.profile().parent().expect("a directory")).expect("made");
    fs::write(home.profile(), "version = 1\nnonsense").expect("written");
    let work = text(&work);
    let file = home.dir.path().join("good.toml");
    fs::write(&file, "version = 1\n").expect("written");
    for args in [
        &[work, "--time", "1"][..],
        &["--show"],
        &["--export"],
        &["--import", text(&file)],
        &["--forget"],
    ] {
        let output = home.tune(args);
        let words = "profile.toml': line 2: ";
        testfs::assert_refused(&args.join(" "), &output, 1, "haulage tune: ", words);
    }
    assert_eq!(fs::read_to_string(home.profile()).expect("read"), "version = 1\nnonsense");
    // A damaged file is not imported either.
    fs::remove_file(home.profile()).expect("removed");
    fs::write(&file, "version = 7\n").expect("written");
    let output = home.tune(&["--import", text(&file)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("version 7 is not known"), "{}", stderr(&output));
    assert!(!home.profile().exists());
}

#[test]
fn a_change_that_would_lose_data_is_refused() {
    let home = Home::new();
    two_machines(&home.work()).write(&home.profile()).expect("written");
    let before = fs::read_to_string(home.profile()).expect("read");
    let by_another_name = home.dir.path().join("link");
    symlink(home.profile(), &by_another_name).expect("linked");
    for (args, expected) in [
        (["--export", text(&home.profile())], "is the profile itself"),
        (["--export", text(&by_another_name)], "is the profile itself"),
        (["--import", "/dev/zero"], "'/dev/zero': it is longer than 8388608 bytes"),
        (["--import", "/"], "cannot read '/': Is a directory"),
    ] {
        let output = home.tune(&args);
        testfs::assert_refused(&args.join(" "), &output, 1, "haulage tune: ", expected);
    }
    assert_eq!(fs::read_to_string(home.profile()).expect("read"), before);
}

/// A profile may come from another user, and a terminal obeys control characters.
#[test]
fn a_profile_cannot_control_the_terminal() {
    let home = Home::new();
    let file = home.dir.path().join("foreign.toml");
    let id = Machine::this().id.expect("it has one");
    let lines = "src = { type = \"xfs\\u001b[2J\", mount_point = \"/a\\nb\" }\nkernel = \"6\\u0007\"\n\
                 [[machine.pair.choice]]\nvariant = \"spl\\u001b]0;x\\u0007ice\"\n\
                 date = \"2026\\u001b[m\"\n";
    let machines =
        [format!("id = \"{id}\""), "id = \"0\"\nhost = \"far\\u001b[31m\\n\"".to_owned()];
    let machines =
        machines.map(|machine| format!("[[machine]]\n{machine}\n[[machine.pair]]\n{lines}"));
    fs::write(&file, format!("version = 1\n{}", machines.concat())).expect("written");
    let imported = home.tune(&["--import", text(&file)]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    let shown = home.command(&["tune", "--show"]).env("CLICOLOR_FORCE", "1").output().expect("ran");
    for output in [&imported, &shown] {
        for said in [stdout(output), stderr(output)] {
            let obeyed = said.chars().filter(|c| c.is_control() && *c != '\n').count();
            assert_eq!(obeyed, 0, "{said:?}");
        }
    }
    let shown = stdout(&shown);
    assert!(
        shown.contains("/a\u{fffd}b") && shown.contains("far\u{fffd}[31m\u{fffd}, another"),
        "{shown}"
    );
    assert!(shown.contains("spl\u{fffd}]0;x\u{fffd}ice"), "{shown}");
}
