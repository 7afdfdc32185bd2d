//! A copy keeps the rate, with any number of workers and any engine.

use std::fs::{create_dir_all, read, write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use testfs::random_bytes;
use tree::{Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly, copy_ok};

const MIB: usize = 1 << 20;

fn at(mib_per_second: u64, jobs: usize, engine: Option<&str>) -> Options {
    Options {
        limit_rate: NonZeroU64::new(mib_per_second << 20),
        jobs: NonZeroUsize::new(jobs),
        engine: engine.map(|text| text.parse().expect("a variant")),
        reflink: tree::Reflink::Never,
        ..Options::archive()
    }
}

#[test]
fn no_copy_is_faster_than_its_rate() {
    let dir = tempfile::tempdir().expect("created");
    let (src, tree) = (dir.path().join("s"), dir.path().join("tree"));
    write(&src, random_bytes(20 * MIB, 1)).expect("written");
    create_dir_all(&tree).expect("created");
    for number in 0..640 {
        write(tree.join(format!("f{number}")), random_bytes(32 << 10, number)).expect("written");
    }
    for (jobs, engine) in
        [(1, None), (4, None), (1, Some("sendfile")), (1, Some("read_write:64K@2"))]
    {
        let options = at(40, jobs, engine);
        for (src, name) in [(&src, "t"), (&tree, "copy")] {
            let dst = dir.path().join(format!("{name}-{jobs}-{}", engine.is_some()));
            let started = Instant::now();
            let _ = copy_ok(src, &dst, &options);
            let seconds = started.elapsed().as_secs_f64();
            // Half a second. Other load on the machine makes it longer, but not this much.
            assert!((0.45..20.0).contains(&seconds), "{name}, {jobs}, {engine:?}: {seconds} s");
        }
    }
    let copy = dir.path().join("t-4-false");
    assert!(read(&src).expect("read") == read(copy).expect("its copy"));
}

#[test]
fn an_interrupt_ends_the_wait() {
    let dir = tempfile::tempdir().expect("created");
    let src = dir.path().join("s");
    write(&src, random_bytes(MIB, 1)).expect("written");
    let recorder = Recorder::default();
    // At 16 bytes a second the second piece starts after four minutes.
    let options = Options { limit_rate: NonZeroU64::new(16), ..at(1, 1, None) };
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            recorder.interrupt.store(true, Ordering::Relaxed);
        });
        let _ = copy_exactly(&src, &dir.path().join("t"), &options, &recorder);
    });
    let seconds = started.elapsed().as_secs_f64();
    assert!((0.3..60.0).contains(&seconds), "{seconds} s");
    let reported = recorder.reported();
    assert!(matches!(reported[..], [Diagnostic::Interrupted { bytes: 4096, .. }]), "{reported:?}");
}
