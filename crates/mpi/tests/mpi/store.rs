//! A store that is slow, and that each host sees through a mount of its own.

use std::fs::{create_dir_all, write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{assert_equal, scratch};
use crate::{PROGRAM, messages, mpirun, run};
use testfs::{Costs, FuseFs, fixture, random_bytes};

/// A tree of files, directories and hard links between them, which a store can have.
fn make_plain_tree(root: &Path) {
    for number in 0..24 {
        let dir = format!("d{number}/below");
        for file in 0..8 {
            fixture::add(&format!("{dir}/{file}#3000:{}", number * 100 + file), root);
        }
        // Of the directory before it, so that different ranks come to the names.
        for file in (0..4).filter(|_| number > 0) {
            let other = format!("d{}/below/{file}", number - 1);
            fixture::add(&format!("{dir}/link\\s{file}=={other}"), root);
        }
    }
    for number in 0..24 {
        let [below, top] = [1_000_000_000, 1_100_000_000].map(|seconds| seconds + number);
        let dirs = format!("d{number}/below/ mode=750 t={below}; d{number}/ mode=750 t={top}");
        fixture::add(&dirs, root);
    }
}

/// mpirun of one rank for each of `mounts` of one store, which all call it `shared`. Each runs `before` there
/// and then `haulage-mpi` with `args`.
fn on_mounts(shared: &Path, mounts: &[FuseFs], before: &str, args: &str) -> Command {
    // Each rank enters a mount namespace in which the store has the same name.
    let rank = |mount: &FuseFs| {
        let script = format!(
            "mount --bind '{}' '{}' && cd '{}' && {before}; exec '{PROGRAM}' {args}",
            mount.path().display(),
            shared.display(),
            shared.display(),
        );
        ["unshare", "--mount", "sh", "-c"].map(str::to_owned).into_iter().chain([script])
    };
    let mut command = mpirun(Path::new("/"), 1, &[]);
    for (index, mount) in mounts.iter().enumerate() {
        if index > 0 {
            command.args([":", "-n", "1"]);
        }
        command.args(rank(mount));
    }
    command
}

/// Two ranks as on two hosts that mount one store: each sees for a second what its own mount has seen
/// before, names that are missing included.
#[test]
fn ranks_with_mounts_of_their_own_copy_one_tree() {
    let latency = Duration::from_millis(1);
    let costs = Costs { latency, caches_for: Duration::from_secs(1), ..Costs::default() };
    let Some((mounts, shared)) = mounts_of_a_store(costs, 2) else { return };
    make_plain_tree(&mounts[0].path().join("src"));
    // Each mount learns that the copy does not exist.
    let looks = "ls dst 2>/dev/null";
    let output = on_mounts(shared.path(), &mounts, looks, "cp -a --jobs=1 src dst").output();
    let output = output.expect("mpirun runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(messages(&output), Vec::<String>::new(), "{output:?}");
    // A mount that has seen nothing yet.
    let Some(third) = mounts[0].mount_again() else { return };
    assert_equal(&third.path().join("src"), &third.path().join("dst"), "by a third mount");
}

/// Files in each directory of the store. A mount makes one name at a time in a directory, so many in one would be
/// made one after the other.
const STORE_FILES: usize = 8;

/// A store on which each request takes 2 ms, with a tree `src` of that many directories.
fn store(dirs: usize) -> Option<FuseFs> {
    let store = FuseFs::mount(Costs { latency: Duration::from_millis(2), ..Costs::default() })?;
    std::thread::scope(|scope| {
        for dir in 0..dirs {
            let dir = store.path().join(format!("src/{dir}"));
            scope.spawn(move || {
                create_dir_all(&dir).expect("created");
                for file in 0..STORE_FILES {
                    write(dir.join(file.to_string()), format!("contents of {file}"))
                        .expect("written");
                }
            });
        }
    });
    Some(store)
}

/// Runs `args` with that many ranks. Returns the seconds that it takes.
fn timed(store: &FuseFs, ranks: usize, args: &[&str]) -> f64 {
    let start = Instant::now();
    let output = run(store.path(), ranks, args);
    assert!(output.status.success(), "{ranks} ranks: {output:?}");
    start.elapsed().as_secs_f64()
}

/// Copies by that many ranks of one worker each. Returns the seconds that it takes.
fn copy_on_the_store(store: &FuseFs, ranks: usize) -> f64 {
    let dst = format!("dst{ranks}");
    let seconds = timed(store, ranks, &["cp", "-r", "--jobs=1", "src", &dst]);
    let [src, copied] = ["src", &dst].map(|name| store.contents_below(name));
    assert!(src.len() > STORE_FILES && src == copied, "{ranks} ranks");
    seconds
}

/// Seconds of a copy by that many ranks. The start of the ranks is left out.
fn seconds_on_the_store(store: &FuseFs, ranks: usize) -> f64 {
    let start = timed(store, ranks, &["--version"]);
    (copy_on_the_store(store, ranks) - start).max(f64::EPSILON)
}

#[test]
fn ranks_wait_for_a_slow_store_at_the_same_time() {
    let Some(store) = store(16) else { return };
    let _ = store.most_travelling();
    copy_on_the_store(&store, 4);
    let most = store.most_travelling();
    assert!(most > 2, "four ranks wait for {most} requests at a time");
}

/// The table of docs/scale.md. A quiet machine is asked for three quarters of what as many machines could gain.
fn assert_speed_up(ranks: u8, one: f64, seconds: f64) {
    let speed_up = one / seconds;
    println!("{ranks} ranks: {seconds:.2} s, speed-up {speed_up:.2}");
    assert!(speed_up > 0.75 * f64::from(ranks), "{ranks} ranks: {speed_up:.2}");
}

#[test]
#[ignore = "needs a quiet machine"]
fn speed_up_on_a_slow_store() {
    let Some(store) = store(48) else { return };
    let one = seconds_on_the_store(&store, 1);
    println!("1 rank: {one:.2} s");
    for ranks in [2, 4, 8] {
        assert_speed_up(ranks, one, seconds_on_the_store(&store, ranks.into()));
    }
}

/// Mounts of one store, and a directory for [`on_mounts`]. `None` after a reported skip.
fn mounts_of_a_store(costs: Costs, count: usize) -> Option<(Vec<FuseFs>, tempfile::TempDir)> {
    if !testfs::is_root() {
        testfs::skip(&testfs::test_name(), "only root can mount");
        return None;
    }
    let mut mounts = vec![FuseFs::mount(costs)?];
    while mounts.len() < count {
        mounts.push(mounts[0].mount_again()?);
    }
    Some((mounts, scratch()))
}

#[test]
fn ranks_with_mounts_of_their_own_copy_one_large_file() {
    let costs = Costs { caches_for: Duration::from_secs(1), ..Costs::default() };
    let Some((mounts, shared)) = mounts_of_a_store(costs, 3) else { return };
    write(mounts[0].path().join("src"), random_bytes(136 << 20, 9)).expect("written");
    let copies = [("-a", "dst1"), ("-a --atomic --verify", "dst2"), ("-a --resume", "dst3")];
    for (options, dst) in copies {
        let args = format!("cp {options} --jobs=1 src {dst}");
        let output = on_mounts(shared.path(), &mounts, "ls", &args).output().expect("mpirun ran");
        assert!(output.status.success(), "{options}: {output:?}");
        assert_eq!(messages(&output), Vec::<String>::new(), "{options}: {output:?}");
        let Some(other) = mounts[0].mount_again() else { return };
        assert_equal(&other.path().join("src"), &other.path().join(dst), options);
        assert_eq!(testfs::names_in(other.path()), [dst, "src"], "{options}");
        // The mounts may show this name for a second: the next copy has another one.
        std::fs::remove_file(other.path().join(dst)).expect("removed");
    }
}

#[test]
#[ignore = "needs a quiet machine and 3 GiB of memory"]
fn speed_up_of_one_large_file() {
    // Ranks with one mount would wait for one another: the kernel has one write to a file at a time.
    let costs = Costs { latency: Duration::from_millis(2), ..Costs::default() };
    let Some((mounts, shared)) = mounts_of_a_store(costs, 8) else { return };
    let (src, dst) = (mounts[0].path().join("src"), mounts[0].path().join("dst"));
    write(&src, random_bytes(1 << 30, 5)).expect("written");
    let mut one = None;
    for ranks in [1, 2, 4, 8_u8] {
        let seconds = |args: &str| {
            let start = Instant::now();
            let mut command = on_mounts(shared.path(), &mounts[..ranks.into()], "true", args);
            let output = command.output().expect("mpirun ran");
            assert!(output.status.success(), "{ranks} ranks: {output:?}");
            start.elapsed().as_secs_f64()
        };
        let start = seconds("--version");
        let seconds = seconds("cp --jobs=1 src dst") - start;
        assert_speed_up(ranks, *one.get_or_insert(seconds), seconds);
        assert_eq!(std::fs::metadata(&dst).expect("looked at").len(), 1 << 30, "{ranks} ranks");
        std::fs::remove_file(&dst).expect("removed");
    }
}
