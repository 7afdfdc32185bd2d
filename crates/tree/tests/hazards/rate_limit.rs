//! A copy keeps the rate, with any number of workers and any engine.

use std::fs::{create_dir_all, read, write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::{Duration, Instant};

use testfs::random_bytes;
use tree::{Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly, copy_ok, home};

const MIB: usize = 1 << 20;

fn limited(mib_per_second: u64, jobs: usize, engine: Option<&str>) -> Options {
    Options {
        limit_rate: NonZeroU64::new(mib_per_second << 20),
        jobs: NonZeroUsize::new(jobs),
        engine: engine.map(|text| text.parse().expect("parsed")),
        reflink: tree::Reflink::Never,
        ..Options::archive()
    }
}

#[test]
fn no_copy_is_faster_than_its_rate() {
    let (_dir, at) = home();
    let (src, tree) = (at("s"), at("tree"));
    write(&src, random_bytes(10 * MIB, 1)).expect("written");
    create_dir_all(&tree).expect("created");
    for number in 0..320 {
        write(tree.join(format!("f{number}")), random_bytes(32 << 10, number)).expect("written");
    }
    for (jobs, engine) in
        [(1, None), (4, None), (1, Some("sendfile")), (1, Some("read_write:64K@2"))]
    {
        let options = limited(20, jobs, engine);
        for (src, name) in [(&src, "t"), (&tree, "copy")] {
            let dst = at(&format!("{name}-{jobs}-{}", engine.is_some()));
            let started = Instant::now();
            let _ = copy_ok(src, &dst, &options);
            let seconds = started.elapsed().as_secs_f64();
            // Half a second. Other load on the machine makes it longer, but not this much.
            assert!((0.45..20.0).contains(&seconds), "{name}, {jobs}, {engine:?}: {seconds} s");
        }
    }
    assert!(read(&src).expect("read") == read(at("t-4-false")).expect("read"));
}

#[test]
fn an_interrupt_ends_the_wait() {
    let (_dir, at) = home();
    write(at("s"), random_bytes(MIB, 1)).expect("written");
    // The wait asks again and again. At 16 bytes a second the second piece starts after four minutes.
    let recorder = Recorder { interrupts_at: Some(10), ..Recorder::default() };
    let options = Options { limit_rate: NonZeroU64::new(16), ..limited(1, 1, None) };
    let started = Instant::now();
    let _ = copy_exactly(&at("s"), &at("t"), &options, &recorder);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let reported = recorder.reported();
    assert!(matches!(reported[..], [Diagnostic::Interrupted { bytes: 4096, .. }]), "{reported:?}");
}
