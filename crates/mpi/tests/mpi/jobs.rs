//! What a job copies and refuses.

use std::fs::{File, FileTimes, create_dir, create_dir_all, hard_link, write};
use std::time::SystemTime;

use crate::common::{assert_equal, make_tree, scratch};
use crate::{PROGRAM, messages, mpirun, run};
use testfs::stderr;

#[test]
fn messages_have_host_and_rank_and_the_status_is_1() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 4);
    std::fs::create_dir_all(dir.path().join("dst/src/flat/file 900")).expect("created");
    let output = run(dir.path(), 3, &["cp", "-a", "src", "dst"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let messages = messages(&output);
    let [message] = &messages[..] else { panic!("{messages:?}") };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (name, message) = message.split_once("] ").expect("a name in brackets");
    let rank = name.strip_prefix(&format!("[{host} ")).expect("the host");
    assert!(rank.parse::<usize>().expect("parsed") < 3, "{rank}");
    let expected = "cp: cannot overwrite directory 'dst/src/flat/file 900' with non-directory 'src/flat/file 900'";
    assert_eq!(message, expected);
}

#[test]
fn what_cannot_be_kept_right_is_refused_once() {
    let dir = scratch();
    create_dir(dir.path().join("src")).expect("created");
    for (args, expected) in [
        (&["cp", "-ai", "src", "dst"][..], "--interactive"),
        (&["cp", "-av", "src", "dst"], "--verbose"),
        (&["cp", "-a", "--debug", "src", "dst"], "--debug"),
        (&["cp", "-a", "--backup=numbered", "src", "dst"], "--backup"),
        (&["cp", "-ab", "src", "dst"], "--backup"),
        (&["cp", "-a", "--dry-run", "src", "dst"], "--dry-run"),
        (&["cp", "-a", "--parents", "src", "."], "--parents"),
        (&["cp", "-aL", "src", "dst"], "--dereference"),
        (&["cp", "-a", "--receipt=src/r", "src", "dst"], "is below 'src'"),
        (&["cp", "-a", "--receipt=no/r", "src", "dst"], "cannot open 'no/r' for writing"),
        (&["cp", "-a", "--no-such-option", "src", "dst"], "no-such-option"),
    ] {
        let output = run(dir.path(), 2, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        let messages = messages(&output);
        assert!(!messages.is_empty() && messages[0].contains(expected), "{args:?}: {messages:?}");
        assert!(messages.iter().all(|line| line.contains(" 0] ")), "{args:?}: {messages:?}");
        assert!(!dir.path().join("dst").exists(), "{args:?}");
    }
}

#[test]
fn ranks_in_different_directories_or_with_different_umasks_copy_nothing() {
    let dir = scratch();
    let (here, there) = (dir.path().join("here"), dir.path().join("there"));
    create_dir(&here).expect("created");
    create_dir(&there).expect("created");
    write(here.join("f"), "x").expect("written");
    let copy = [PROGRAM, "cp", "-a", "f", "g"];
    let there = there.to_str().expect("text");
    let with_umask = format!("umask 027; exec {}", copy.join(" "));
    for (other, expected) in [
        ([&["--wdir", there][..], &copy].concat(), "cp: rank 1 is haulage"),
        (vec!["sh", "-c", &with_umask], "with umask 0027, and rank 0 is haulage"),
    ] {
        let mut job = mpirun(&here, 1, &[]);
        let output = job.args(copy).args([":", "-n", "1"]).args(other).output();
        let output = output.expect("mpirun runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let messages = messages(&output);
        let [message] = &messages[..] else { panic!("{messages:?}") };
        assert!(message.contains(expected), "{message}");
        assert!(!here.join("g").exists(), "{expected}");
    }
}

/// A rank that receives names of many operands keeps none of their destinations open.
#[test]
fn many_operands_need_no_more_descriptors_than_a_few() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    create_dir(&dst).expect("created");
    for number in 0..300 {
        let operand = src.join(number.to_string());
        create_dir_all(&operand).expect("created");
        for file in 0..40 {
            write(operand.join(file.to_string()), "x").expect("written");
        }
        // Links to files of the operand before, of whose destination each rank has to know.
        if number > 0 {
            let other = src.join(format!("{}/0", number - 1));
            hard_link(other, operand.join("link")).expect("linked");
        }
    }
    let copy = format!("ulimit -n 64; exec {PROGRAM} cp -a --jobs=1 --stats src/* dst");
    let output = mpirun(dir.path(), 3, &[]).args(["sh", "-c", &copy]).output().expect("mpirun ran");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(messages(&output), Vec::<String>::new(), "{output:?}");
    // Of the target directory itself only the entries are copied.
    let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    for top in [&src, &dst] {
        File::open(top).and_then(|top| top.set_times(times)).expect("times");
    }
    assert_equal(&src, &dst, "300 operands");
}

/// Open MPI tells which of its message layers it opens. `cm` is for networks that have their own.
#[test]
fn ranks_of_one_host_look_for_no_network_unless_they_are_told_to() {
    let dir = scratch();
    write(dir.path().join("f"), "x").expect("written");
    for (options, looks) in [(&[][..], false), (&["--mca", "pml", "ob1,cm"], true)] {
        let mut command = mpirun(dir.path(), 2, options);
        command.env("OMPI_MCA_pml_base_verbose", "10");
        let output = command.args([PROGRAM, "cp", "-a", "f", "g"]).output().expect("mpirun ran");
        assert!(output.status.success(), "{output:?}");
        let told = stderr(&output);
        assert!(told.contains("component ob1"), "{told}");
        assert_eq!(told.contains("component cm"), looks, "{told}");
    }
}
