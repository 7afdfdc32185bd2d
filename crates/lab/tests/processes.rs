//! What takes several processes: sessions, runs at once, and the other ends of connections. Those
//! start their own program again, which here is this one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use haulage_lab::clock::Clock;
use haulage_lab::definition::cell::{Cell, Destination};
use haulage_lab::sample::call_times::{CallTimes, SEQUENCE_MAX};
use haulage_lab::sample::measurement::Measurement;
use haulage_lab::sample::record::Sample;
use haulage_lab::scratch::WorkDir;
use haulage_lab::session::protocol::{Event, Order};
use haulage_lab::workload::scratch_dirs::ScratchDirs;
use haulage_lab::workload::{
    self,
    interface::{ReadyVariant, Setting},
};
use haulage_lab::{process, session};
use libtest_mimic::{Arguments, Trial};
use testfs::FsKind;

fn main() {
    if std::env::args().nth(1).is_some_and(|argument| argument == process::SUBCOMMAND) {
        std::process::exit(i32::from(!session::main()));
    }
    if std::env::args().nth(1).is_some_and(|argument| argument == HOLD_A_LEASE) {
        hold_a_lease(&std::env::args().nth(2).expect("found"));
    }
    let test = |name: &'static str, run: fn()| {
        Trial::test(name, move || {
            // What is skipped is told by the name of the thread.
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
            thread?.join().map_err(|_| "it panicked".into())
        })
    };
    let tests = vec![
        test("a_file_is_sent_by_every_way", a_file_is_sent_by_every_way),
        test("a_file_is_received_by_every_way", a_file_is_received_by_every_way),
        test("a_full_disk_ends_receiving", a_full_disk_ends_receiving),
        test("a_session_tells_of_every_run", a_session_tells_of_every_run),
        test("hands_run_at_once", hands_run_at_once),
        test("single_calls_are_told", single_calls_are_told),
        test("breaking_a_lease_ends_its_holder", breaking_a_lease_ends_its_holder),
        test("mapped_pages_are_faulted_in_one_by_one", mapped_pages_are_faulted_in_one_by_one),
    ];
    let mut arguments = Arguments::from_args();
    // Device bytes and faults are counted for the process.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, tests).exit();
}

const BYTES: u64 = (4 << 20) + 4099;

/// Has this program take a lease on a file and wait.
const HOLD_A_LEASE: &str = "hold-a-lease";

fn hold_a_lease(path: &str) -> ! {
    let file = std::fs::File::open(path).expect("opened");
    let leased = sys::Leased::take(file.into()).expect("leased");
    let map = leased.map(0, 100, false, false).expect("mapped");
    println!("{}", map.len());
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert!(map.iter().all(|&byte| byte == 1), "the bytes changed under the lease");
    }
}

struct Place {
    dirs: ScratchDirs,
    cell: Cell,
    _home: tempfile::TempDir,
}

impl Place {
    fn new(workload: &str, file_bytes: u64, dir: &Path) -> Place {
        let home = tempfile::tempdir_in(dir).expect("created");
        let below = |name| {
            let path = home.path().join(name);
            std::fs::create_dir(&path).expect("made");
            WorkDir::open(&path).expect("opened")
        };
        let cell = Cell::plain("part", workload, file_bytes);
        let dirs = ScratchDirs { src: below("src"), dst: below("dst"), seed: 7 };
        Place { dirs, cell, _home: home }
    }

    fn ready(&self, variant: &str) -> Box<dyn ReadyVariant> {
        let row = workload::by_name(&self.cell.workload).expect("a workload");
        let setting = Setting { cell: &self.cell, dirs: &self.dirs, nth: 0 };
        (row.start)(&setting, variant).unwrap_or_else(|why| panic!("{variant}: {why:?}"))
    }

    fn order(&self, variants: &[&str], rounds: usize) -> Order {
        Order {
            cell: self.cell.clone(),
            session: 1,
            variants: variants.iter().map(|&variant| variant.to_owned()).collect(),
            rounds: vec![(0..variants.len()).collect(); rounds],
            src_dir: self.dirs.src.path().to_owned(),
            dst_dir: self.dirs.dst.path().to_owned(),
            seed: 7,
            warm_up: true,
            count_calls: true,
            ..Order::default()
        }
    }

    fn is_clean(&self) -> bool {
        std::fs::read_dir(self.dirs.dst.path()).expect("listed").count() == 0
    }
}

fn run(ready: &mut dyn ReadyVariant) -> Measurement {
    ready.run(Clock::default()).expect("it runs")
}

/// Has a process of its own carry out `order`, and returns the variant, the sample and the times of calls of each
/// run. No variant is refused, and nothing fails.
fn runs(order: &Order) -> Vec<(usize, Sample, Option<CallTimes>)> {
    let mut session = Command::new(std::env::current_exe().expect("a program"))
        .arg(process::SUBCOMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("spawned");
    let mut line = serde_json::to_vec(order).expect("plain data");
    line.push(b'\n');
    session.stdin.as_mut().expect("piped").write_all(&line).expect("written");
    let output = session.wait_with_output().expect("waited for");
    let mut runs = Vec::new();
    for event in serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Event>() {
        match event.expect("an event") {
            Event::Ran { variant, sample, times } => runs.push((variant, *sample, times)),
            Event::Round { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    runs
}

fn a_file_is_sent_by_every_way() {
    let place = Place::new("send", BYTES, &std::env::temp_dir());
    for variant in ["mmap:8M", "read_write:64K", "sendfile", "sendfile:1M", "splice:64K,pipe=1M"] {
        let mut ready = place.ready(variant);
        for _ in 0..2 {
            let measured = run(&mut *ready);
            assert!(measured.verified && measured.counted, "{variant}: {}", measured.state_note);
            assert!(measured.elapsed_ns > 10_000, "{variant}: {measured:?}");
            assert!(measured.durable_ns.is_some_and(|ns| ns > measured.elapsed_ns), "{variant}");
            assert_eq!(measured.refusals, "", "{variant}");
            assert_eq!(measured.processor_wait_ns, None, "it may wait for the receiver");
            if variant.starts_with("mmap") {
                assert!(measured.minor_faults > 20, "{measured:?}");
            }
        }
        assert_eq!(ready.helpers().len(), 1, "the receiver");
        let calls = ready.count_calls().expect("no error").expect("they are counted");
        assert!(calls >= if variant == "read_write:64K" { 65 } else { 1 }, "{variant}: {calls}");
        assert!(run(&mut *ready).verified, "{variant}: after counting");
    }
}

fn a_file_is_received_by_every_way() {
    testfs::each_fs(|kind, dir| {
        let mut place = Place::new("receive", BYTES, dir);
        for destination in [Destination::Fresh, Destination::Overwritten] {
            place.cell.destination = destination;
            place.cell.durable = destination == Destination::Fresh;
            for variant in ["mmap:8K", "mmap:8M,populate", "read_write:64K", "splice:64K,pipe=1M"] {
                let mut ready = place.ready(variant);
                for _ in 0..2 {
                    let measured = run(&mut *ready);
                    assert!(measured.verified && measured.counted, "{kind} {variant}");
                    assert!(measured.elapsed_ns > 10_000, "{kind} {variant}");
                    assert_eq!(measured.processor_wait_ns, None, "it may wait for the sender");
                    assert_eq!(measured.durable_ns.is_some(), place.cell.durable, "{kind}");
                    // The kernel may have taken some back.
                    let resident = measured.dst_resident_bytes_after.expect("it is counted");
                    assert!((BYTES / 10 * 9..=BYTES).contains(&resident), "{kind} {variant}");
                }
                drop(ready);
                assert!(place.is_clean(), "{kind} {variant}");
            }
        }
    });
}

fn a_full_disk_ends_receiving() {
    let Some(small) = testfs::small_fs(FsKind::Ext4) else { return };
    small.leave_room(1 << 20);
    let dir = small.join("here");
    std::fs::create_dir(&dir).expect("made");
    let place = Place::new("receive", 8 << 20, &dir);
    for variant in ["mmap:8M", "read_write:64K"] {
        let error = place.ready(variant).run(Clock::default()).map(|_| ()).expect_err("no room");
        assert!(error.to_string().contains("No space left"), "{variant}: {error}");
    }
}

fn a_session_tells_of_every_run() {
    let place = Place::new("copy", 100_000, &std::env::temp_dir());
    let runs = runs(&place.order(&["read_write:4K", "sendfile", "memory"], 3));
    assert_eq!(runs.len(), 9, "{runs:?}");
    for (variant, Sample { measured, .. }, _) in &runs {
        let calls = [Some(25), Some(1), None][*variant];
        assert!(measured.counted);
        assert_eq!((measured.calls, measured.verified), (calls, calls.is_some()));
    }
    assert!(place.is_clean());
}

fn hands_run_at_once() {
    for (workload, variant) in [("copy", "sendfile"), ("send", "sendfile"), ("receive", "mmap:8K")]
    {
        let mut place = Place::new(workload, 1 << 20, &std::env::temp_dir());
        place.cell.at_once = 3;
        let runs = runs(&place.order(&[variant], 2));
        assert_eq!(runs.len(), 2, "{workload}: {runs:?}");
        for (_, Sample { measured, .. }, _) in &runs {
            assert_eq!(measured.each_ns.len(), 3, "{workload}");
            let longest = *measured.each_ns.iter().max().expect("three");
            assert!(measured.elapsed_ns >= longest, "{workload}: {measured:?}");
            assert!(measured.verified, "{workload}");
        }
    }
}

fn single_calls_are_told() {
    for at_once in [1, 2] {
        let mut place = Place::new("calls", 3 << 20, &std::env::temp_dir());
        place.cell.at_once = at_once;
        let runs = runs(&place.order(&["64K", "100"], 2));
        assert_eq!(runs.len(), 4, "{at_once}: {runs:?}");
        for (variant, sample, times) in &runs {
            let times = times.as_ref().expect("they are timed");
            let calls = (3_u64 << 20).div_ceil([64 << 10, 100][*variant]);
            assert_eq!(times.read.calls(), calls * u64::from(at_once), "{variant}");
            assert_eq!(times.write.calls(), times.read.calls());
            assert!(times.clock_ns > 0);
            let sequence = times.read.sequence_ns.len();
            assert!(sequence <= SEQUENCE_MAX);
            assert_eq!(sequence > 0, sample.round == 1, "the first round has it alone");
            assert_eq!(times.read.sequence_step, [1, 4][*variant]);
        }
    }
}

fn breaking_a_lease_ends_its_holder() {
    use std::os::unix::process::ExitStatusExt;
    testfs::each_fs(|kind, dir| {
        let path = dir.join("leased");
        for truncates in [false, true] {
            std::fs::write(&path, [1; 100]).expect("written");
            let mut holder = Command::new(std::env::current_exe().expect("a program"))
                .arg(HOLD_A_LEASE)
                .arg(&path)
                .stdout(Stdio::piped())
                .spawn()
                .expect("spawned");
            let mut line = String::new();
            let stdout = holder.stdout.take().expect("piped");
            BufReader::new(stdout).read_line(&mut line).expect("read");
            assert_eq!(line, "100\n", "{kind}");
            // Waits for the lease, which ends with its holder, or after 45 s.
            let started = std::time::Instant::now();
            std::fs::File::options().write(true).truncate(truncates).open(&path).expect("opened");
            assert!(
                started.elapsed().as_secs() < 40,
                "{kind}: the lease ran out before its holder"
            );
            let status = holder.wait().expect("waited for");
            assert_eq!(status.signal(), Some(29), "{kind}: SIGIO");
        }
    });
}

fn mapped_pages_are_faulted_in_one_by_one() {
    let place = Place::new("create", BYTES, &std::env::temp_dir());
    let page_bytes = rustix::param::page_size() as u64;
    let [written, mapped] = ["write", "mmap"].map(|method| {
        let mut ready = place.ready(&format!("{method}:{}", 2 * page_bytes));
        run(&mut *ready);
        run(&mut *ready)
    });
    let calls = Some(BYTES.div_ceil(2 * page_bytes));
    assert_eq!((written.calls, mapped.calls), (calls, calls));
    // The kernel may read a page of the file again that it has written back.
    assert!(mapped.minor_faults + mapped.major_faults >= BYTES / page_bytes, "{mapped:?}");
    assert!(written.minor_faults < 100, "{written:?}");
}
