//! The builder of a copy.

use std::ffi::{OsStr, OsString};
use std::num::{NonZeroU64, NonZeroUsize};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use engines::Variant;
use engines::profile::Location;
use rustix::fs::FileType;
use tree::{
    Destination, DirectoryStage, Existing, Filter, Follow, IgnoreFile, Keep, ModeRule, Observer,
    Options, PreScan, Preserve, Receipt, Reflink, Request, Rule, Sparse,
};

use crate::cancel::{CancelToken, Control};
use crate::error::Error;
use crate::partners::Partnership;
use crate::progress::Progress;
use crate::report::{CopyFailed, Report};
use crate::session::{Event, Session, Wanted};

/// Events that wait for the thread of the caller, at most. Then the copy waits.
const EVENTS_MAX: usize = 1024;

/// How often the progress callback is called, unless the caller says otherwise.
const PROGRESS_PER_SECOND: u32 = 10;

type OnProgress<'c> = Box<dyn FnMut(&Progress) -> Control + 'c>;
type OnError<'c> = Box<dyn FnMut(&Error) -> Control + 'c>;
type OnEntry<'c> = Box<dyn FnMut(&Receipt) -> Control + 'c>;
type OnFound<'c> = Box<dyn FnMut(&Path, FileType) -> Control + 'c>;
type OnDirectory<'c> = Box<dyn FnMut(&Path, &Path, DirectoryStage) -> Control + 'c>;

/// A copy of files and trees: what, where to, and how.
///
/// Without options it copies as `cp` does: the data and the permissions less the umask, no
/// directories, symbolic links as what they lead to, and existing files are replaced.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let (src, dst) = (home.path().join("photos"), home.path().join("backup"));
/// # std::fs::create_dir(&src)?;
/// # std::fs::write(src.join("a.jpg"), "some bytes")?;
/// let report = haulage::Copy::new(&src, &dst)
///     .recursive()
///     .archive()
///     .exclude("*.tmp")
///     .progress(|progress| println!("{} bytes", progress.bytes))
///     .run()?;
/// assert_eq!(report.files(), 1);
/// # Ok(())
/// # }
/// ```
///
/// Callbacks are called on the thread that calls [`run`](Copy::run), so they need not be `Send`.
/// With any of them the copy runs on a thread of its own beside it; without, on the thread that
/// calls `run`. A large tree gets further threads in both cases.
#[must_use = "a copy does nothing until it is run"]
pub struct Copy<'c> {
    files: Files<'c>,
    options: Options,
    rules: Vec<Rule>,
    ignore_files: Vec<PathBuf>,
    /// What [`Copy::follow`] was given. Otherwise it depends on whether the copy is recursive.
    follow: Option<Follow>,
    cancel: CancelToken,
    counts_first: bool,
    progress_every: Duration,
    callbacks: Callbacks<'c>,
}

/// What the caller wants to be told.
#[derive(Default)]
struct Callbacks<'c> {
    progress: Option<OnProgress<'c>>,
    error: Option<OnError<'c>>,
    entry: Option<OnEntry<'c>>,
    found: Option<OnFound<'c>>,
    directory: Option<OnDirectory<'c>>,
}

/// What a [`struct@Copy`] copies.
#[derive(Debug)]
enum Files<'c> {
    Named(Request),
    Open { src: BorrowedFd<'c>, dst: BorrowedFd<'c> },
}

impl Files<'_> {
    fn copy(&self, options: &Options, observer: &dyn Observer) -> tree::Outcome {
        match self {
            Files::Named(request) => tree::copy(request, options, observer),
            Files::Open { src, dst } => tree::copy_descriptors(*src, *dst, options, observer),
        }
    }
}

impl<'c> Copy<'c> {
    /// Copies `src` to the name `dst`. If `dst` is a directory, a directory `src` is merged into it,
    /// and any other `src` is an error.
    pub fn new(src: impl AsRef<Path>, dst: impl AsRef<Path>) -> Copy<'c> {
        let destination = Destination::Exact(dst.as_ref().into());
        Copy::of(Request { sources: vec![src.as_ref().into()], destination }, Options::default())
    }

    /// Copies each of `sources` into the directory `dir`, which must exist, under its own last
    /// component.
    pub fn into_directory<S: AsRef<Path>>(
        sources: impl IntoIterator<Item = S>,
        dir: impl AsRef<Path>,
    ) -> Copy<'c> {
        let sources = sources.into_iter().map(|source| source.as_ref().into()).collect();
        let destination = Destination::Directory(dir.as_ref().into());
        Copy::of(Request { sources, destination }, Options::default())
    }

    /// What `request` names, with all options given at once.
    pub fn of(request: Request, options: Options) -> Copy<'c> {
        Copy::files(Files::Named(request), options)
    }

    /// Copies what is open as `src` to what is open as `dst`, as
    /// [`copy_descriptors`](crate::copy_descriptors) does. Options about names and trees have no effect.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let home = tempfile::tempdir()?;
    /// # let (src, dst) = (home.path().join("src"), home.path().join("dst"));
    /// # std::fs::write(&src, "some bytes")?;
    /// use std::fs::File;
    /// use std::os::fd::AsFd;
    ///
    /// let (src, dst) = (File::open(&src)?, File::create(&dst)?);
    /// let report = haulage::Copy::descriptors(src.as_fd(), dst.as_fd())
    ///     .progress(|progress| println!("{} bytes", progress.bytes))
    ///     .run()?;
    /// assert_eq!(report.data_bytes(), 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn descriptors(src: BorrowedFd<'c>, dst: BorrowedFd<'c>) -> Copy<'c> {
        Copy::files(Files::Open { src, dst }, Options::default())
    }

    fn files(files: Files<'c>, options: Options) -> Copy<'c> {
        Copy {
            files,
            options,
            rules: Vec::new(),
            ignore_files: Vec::new(),
            follow: None,
            cancel: CancelToken::new(),
            counts_first: false,
            progress_every: Duration::from_secs(1) / PROGRESS_PER_SECOND,
            callbacks: Callbacks::default(),
        }
    }

    /// Changes options that have no function of their own, such as backups.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Copy<'c> {
        change(&mut self.options);
        self
    }

    /// Copies directories with their entries, as `cp -r`: symbolic links as links, unless
    /// [`follow`](Copy::follow) says otherwise, and special files are created anew.
    pub fn recursive(self) -> Copy<'c> {
        let follow = self.follow.unwrap_or(Follow::Never);
        self.with(|options| (options.recursive, options.follow) = (true, follow))
    }

    /// As `cp -a`: recursive, symbolic links as links, hard links as links, and every attribute that
    /// the file systems have. An extended attribute that cannot be kept is no error.
    pub fn archive(self) -> Copy<'c> {
        self.recursive().preserve_only(Options::archive().preserve)
    }

    /// Which symbolic links of the source are followed. By default all, and none if the copy is
    /// recursive.
    pub fn follow(mut self, follow: Follow) -> Copy<'c> {
        self.follow = Some(follow);
        self.with(|options| options.follow = follow)
    }

    /// Keeps permissions, access control lists and times, and the owner if that is allowed, as
    /// `cp -p`.
    pub fn preserve(self) -> Copy<'c> {
        self.preserve_only(Preserve {
            mode: ModeRule::Preserve,
            ownership: true,
            timestamps: true,
            ..Preserve::default()
        })
    }

    /// Keeps extended attributes too. One that cannot be kept is no error.
    pub fn xattrs(self) -> Copy<'c> {
        self.with(|options| {
            (options.preserve.xattr, options.preserve.quiet) = (Keep::IfPossible, true);
        })
    }

    /// Keeps exactly these attributes.
    pub fn preserve_only(self, preserve: Preserve) -> Copy<'c> {
        self.with(|options| options.preserve = preserve)
    }

    /// What happens to an existing destination that is no directory. By default it is replaced.
    pub fn existing(self, existing: Existing) -> Copy<'c> {
        self.with(|options| options.existing = existing)
    }

    /// Reads each copy back, from the medium if that is possible, and compares it with its source.
    pub fn verify(self) -> Copy<'c> {
        self.with(|options| options.verify = true)
    }

    /// A name stands for the old file or for the complete new one at every moment.
    pub fn atomic(self) -> Copy<'c> {
        self.with(|options| options.atomic = true)
    }

    /// Syncs every copy and every name before the copy ends.
    pub fn durable(self) -> Copy<'c> {
        self.with(|options| options.durable = true)
    }

    /// Continues a copy of the same names that was killed, inside large files too. Implies
    /// [`atomic`](Copy::atomic), and keeps times, by which a complete file is recognised.
    pub fn resume(self) -> Copy<'c> {
        self.with(|options| {
            (options.resume, options.atomic, options.preserve.timestamps) = (true, true, true);
        })
    }

    /// Whether files share their blocks with their copies, where the file system can. By default they
    /// do.
    pub fn reflink(self, reflink: Reflink) -> Copy<'c> {
        self.with(|options| options.reflink = reflink)
    }

    /// Where copies get holes. By default where the source has them.
    pub fn sparse(self, sparse: Sparse) -> Copy<'c> {
        self.with(|options| options.sparse = sparse)
    }

    /// Does not enter other file systems.
    pub fn one_file_system(self) -> Copy<'c> {
        self.with(|options| options.one_file_system = true)
    }

    /// Leaves the page cache as it was.
    pub fn no_cache(self) -> Copy<'c> {
        self.with(|options| options.no_cache = true)
    }

    /// Reports what would be done, and changes nothing.
    pub fn dry_run(self) -> Copy<'c> {
        self.with(|options| options.dry_run = true)
    }

    /// The number of threads that copy. By default one for each processor, for small files more if
    /// they are measured to help. Zero means the default.
    pub fn jobs(self, jobs: usize) -> Copy<'c> {
        self.with(|options| options.jobs = NonZeroUsize::new(jobs))
    }

    /// Bytes of data a second, at most. Zero means no limit.
    pub fn limit_rate(self, bytes_per_second: u64) -> Copy<'c> {
        self.with(|options| options.limit_rate = NonZeroU64::new(bytes_per_second))
    }

    /// The variant of an engine that moves data, where it works: `"splice:1M".parse()`. By default the
    /// fastest for the file. Files are then not cloned.
    pub fn engine(self, variant: Variant) -> Copy<'c> {
        self.with(|options| options.engine = Some(variant))
    }

    /// Allows engines that handle SIGBUS for the whole process, which is `mmap` with the flag `dst`.
    /// Any other SIGBUS is passed to the handler that was there before.
    pub fn allow_sigbus_handler(self) -> Copy<'c> {
        self.with(|options| options.sigbus_handler = true)
    }

    /// The profile that `haulage tune` wrote. By default none is read, and the rule decides.
    pub fn profile(self, profile: Location) -> Copy<'c> {
        self.with(|options| options.profile = profile)
    }

    /// Leaves out entries below the operands that `glob` matches, a pattern of gitignore(5). The first
    /// pattern of [`exclude`](Copy::exclude) and [`include`](Copy::include) that matches decides.
    pub fn exclude(self, glob: impl AsRef<OsStr>) -> Copy<'c> {
        self.rule(false, glob.as_ref().to_owned())
    }

    /// Copies entries that `glob` matches.
    pub fn include(self, glob: impl AsRef<OsStr>) -> Copy<'c> {
        self.rule(true, glob.as_ref().to_owned())
    }

    /// Leaves out what the patterns of this file say, which has the form of gitignore(5).
    pub fn ignore_file(mut self, path: impl AsRef<Path>) -> Copy<'c> {
        self.ignore_files.push(path.as_ref().to_owned());
        self
    }

    fn rule(mut self, include: bool, glob: OsString) -> Copy<'c> {
        self.rules.push(Rule { include, glob });
        self
    }

    /// The copy stops when this token is cancelled.
    pub fn cancel(mut self, token: &CancelToken) -> Copy<'c> {
        self.cancel = token.clone();
        self
    }

    /// Calls `callback` with the progress, at most ten times a second
    /// ([`progress_per_second`](Copy::progress_per_second)), and once at the end.
    pub fn progress<R: Into<Control>>(
        mut self,
        mut callback: impl FnMut(&Progress) -> R + 'c,
    ) -> Copy<'c> {
        self.callbacks.progress = Some(Box::new(move |progress| callback(progress).into()));
        self
    }

    /// How often the progress callback is called, at most. Zero counts as one.
    pub fn progress_per_second(mut self, times: u32) -> Copy<'c> {
        self.progress_every = Duration::from_secs(1) / times.max(1);
        self
    }

    /// Counts on a thread of its own how much there is to copy, for [`Progress::total`].
    pub fn count_first(mut self) -> Copy<'c> {
        self.counts_first = true;
        self
    }

    /// Calls `callback` with each error when it occurs, and waits for its answer.
    pub fn on_error<R: Into<Control>>(
        mut self,
        mut callback: impl FnMut(&Error) -> R + 'c,
    ) -> Copy<'c> {
        self.callbacks.error = Some(Box::new(move |error| callback(error).into()));
        self
    }

    /// Calls `callback` with the receipt of each entry, a little after it is finished.
    pub fn on_entry<R: Into<Control>>(
        mut self,
        mut callback: impl FnMut(&Receipt) -> R + 'c,
    ) -> Copy<'c> {
        self.callbacks.entry = Some(Box::new(move |receipt| callback(receipt).into()));
        self
    }

    /// Asks `callback` whether an entry below the operands is copied; of a directory, whether it is
    /// entered. `false` leaves it out. The type is as the directory lists it, which may be unknown.
    /// Each question costs two switches between threads.
    pub fn select<R: Into<Control>>(
        mut self,
        mut callback: impl FnMut(&Path, FileType) -> R + 'c,
    ) -> Copy<'c> {
        self.callbacks.found = Some(Box::new(move |path, kind| callback(path, kind).into()));
        self
    }

    /// Calls `callback` with source and destination of each directory at each
    /// [stage](DirectoryStage), and waits for its answer. `false` at [`DirectoryStage::Entered`]
    /// leaves out its entries; the directory itself is copied.
    /// [`on_entry`](Copy::on_entry) is called when it is finished.
    pub fn on_directory<R: Into<Control>>(
        mut self,
        mut callback: impl FnMut(&Path, &Path, DirectoryStage) -> R + 'c,
    ) -> Copy<'c> {
        self.callbacks.directory =
            Some(Box::new(move |src, dst, stage| callback(src, dst, stage).into()));
        self
    }

    /// Copies. An entry that fails does not stop the others.
    ///
    /// # Errors
    /// If an entry failed or the copy was cancelled; also if a pattern, an ignore file or the engine
    /// cannot be used, in which case nothing was copied.
    ///
    /// # Panics
    /// With the panic of a callback, after the copy was stopped.
    pub fn run(mut self) -> Result<Report, CopyFailed> {
        let begun = Instant::now();
        if let Err(error) = self.prepare() {
            return Err(not_started(error));
        }
        let callbacks = &self.callbacks;
        let wanted = Wanted {
            progress: callbacks.progress.is_some(),
            errors: callbacks.error.is_some(),
            receipts: callbacks.entry.is_some(),
            selection: callbacks.found.is_some(),
            directories: callbacks.directory.is_some(),
        };
        let asks = wanted.errors || wanted.selection || wanted.directories;
        let any = asks || wanted.progress || wanted.receipts;
        let (events, received) = sync_channel(EVENTS_MAX);
        let session = Session::new(self.cancel.clone(), wanted, any.then(|| events.clone()));
        if any {
            self.run_beside_callbacks(&session, events, received, begun).map_err(not_started)?;
        } else {
            let _ = self.files.copy(&self.options, &session);
        }
        let report = Report { elapsed: begun.elapsed(), ..session.take_report() };
        let cancelled = session.is_cancelled();
        if cancelled || report.failure_count > 0 {
            return Err(CopyFailed { report: Box::new(report), cancelled });
        }
        Ok(report)
    }

    /// Copies, and tells `observer` what is done, on the threads that do it. Neither the callbacks nor
    /// the token of this copy are used, and patterns only if they are in the options. This is what the
    /// command line does: it allocates and starts nothing that [`run`](Copy::run) needs for its report.
    pub fn run_observed(&self, observer: &dyn Observer) -> tree::Outcome {
        self.files.copy(&self.options, observer)
    }

    /// Copies one tree together with other processes, and tells `observer` what is done. Process 0
    /// copies what the request names. The others copy what the processes give to each other; their
    /// request is not used, and their options must be the same. Callbacks, the token and patterns are
    /// treated as by [`run_observed`](Copy::run_observed).
    ///
    /// # Panics
    /// If it is a copy of [descriptors](Copy::descriptors).
    pub fn run_with_partners(
        &self,
        observer: &dyn Observer,
        partnership: Partnership,
    ) -> tree::Outcome {
        let Files::Named(request) = &self.files else { panic!("partners copy what has a name") };
        let request = (partnership.number == 0).then_some(request);
        tree::copy_with_partners(request, &self.options, observer, partnership)
    }

    /// Makes the filter, and checks what no copy can be started with.
    fn prepare(&mut self) -> Result<(), Error> {
        Error::unless_allowed(&self.options)?;
        if self.rules.is_empty() && self.ignore_files.is_empty() {
            return Ok(());
        }
        let read = |path: &PathBuf| match std::fs::read(path) {
            Ok(text) => Ok(IgnoreFile { path: path.clone(), text }),
            Err(error) => Err(Error::ignore_file(path.clone(), &error)),
        };
        let files = self.ignore_files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        self.options.filter = Filter::new(&self.rules, &files).map_err(Error::bad_glob)?;
        Ok(())
    }

    /// Runs the copy on a thread of its own, and calls the callbacks on this one.
    ///
    /// # Errors
    /// If the thread cannot be started.
    fn run_beside_callbacks(
        &mut self,
        session: &Session,
        events: SyncSender<Event>,
        received: Receiver<Event>,
        begun: Instant,
    ) -> Result<(), Error> {
        let (files, options) = (&self.files, &self.options);
        let scan = PreScan::default();
        let counted = match files {
            Files::Named(request) if self.counts_first && options.filter == Filter::default() => {
                Some(request)
            }
            _ => None,
        };
        let mut server =
            Server { session, scan: counted.map(|_| &scan), begun, callbacks: &mut self.callbacks };
        let every = self.progress_every;
        std::thread::scope(|scope| {
            let copy = || {
                // Also after a panic, for which the scope waits otherwise.
                let _ended = SendsEnd(events);
                let _ = files.copy(options, session);
            };
            let thread = std::thread::Builder::new().name("copy".to_owned());
            let Err(error) = thread.spawn_scoped(scope, copy).map(drop) else {
                if let Some(request) = counted {
                    // If the thread cannot be started, the total is not known.
                    let thread = std::thread::Builder::new().name("count".to_owned());
                    let _ =
                        thread.spawn_scoped(scope, || scan.run(request, options, &|| ())).map(drop);
                }
                // After a panic of a callback as well, which ends this closure, and then `received`.
                let _stops = Stops { scan: &scan, session };
                server.serve(received, every);
                return Ok(());
            };
            Err(Error::thread(&error))
        })
    }
}

impl std::fmt::Debug for Copy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Copy { files, options, rules, ignore_files, .. } = self;
        f.debug_struct("Copy")
            .field("files", files)
            .field("options", options)
            .field("rules", rules)
            .field("ignore_files", ignore_files)
            .finish_non_exhaustive()
    }
}

/// Nothing was copied.
fn not_started(error: Error) -> CopyFailed {
    let report = Report { failures: vec![error], failure_count: 1, ..Report::default() };
    CopyFailed { report: Box::new(report), cancelled: false }
}

/// Tells the thread of the caller that the copy has ended.
struct SendsEnd(SyncSender<Event>);

impl Drop for SendsEnd {
    fn drop(&mut self) {
        // The receiver may be gone.
        let _ = self.0.send(Event::Ended);
    }
}

/// Stops what still runs when the callbacks are no longer served.
struct Stops<'s> {
    scan: &'s PreScan,
    session: &'s Session,
}

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.scan.stop();
        if std::thread::panicking() {
            self.session.quit();
        }
    }
}

/// Calls the callbacks of a copy that runs on another thread.
struct Server<'s, 'c> {
    session: &'s Session,
    scan: Option<&'s PreScan>,
    begun: Instant,
    callbacks: &'s mut Callbacks<'c>,
}

impl Server<'_, '_> {
    /// Calls them until the copy has ended.
    fn serve(&mut self, received: Receiver<Event>, every: Duration) {
        let mut next = Instant::now() + every;
        loop {
            let event = match self.callbacks.progress {
                None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => received.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(event) => self.answer(event),
                Err(RecvTimeoutError::Timeout) => (),
            }
            if self.callbacks.progress.is_some() && Instant::now() >= next {
                self.show_progress();
                next = Instant::now() + every;
            }
        }
        self.show_progress();
    }

    fn answer(&mut self, event: Event) {
        let Callbacks { error, entry, found, directory, .. } = &mut *self.callbacks;
        let (control, answer) = match event {
            Event::Failed(of, answer) => (error.as_mut().map(|on| on(&of)), answer),
            Event::Found(path, kind, answer) => (found.as_mut().map(|on| on(&path, kind)), answer),
            Event::Directory(src, dst, stage, answer) => {
                (directory.as_mut().map(|on| on(&src, &dst, stage)), answer)
            }
            Event::Finished(receipt) => {
                let control = entry.as_mut().map(|on| on(&receipt));
                return self.obey(control.unwrap_or_default());
            }
            Event::Ended => unreachable!("the caller has handled it"),
        };
        // A copy that does not wait any more has no use for the answer.
        let _ = answer.send(control.unwrap_or_default());
    }

    fn show_progress(&mut self) {
        let Some(on_progress) = self.callbacks.progress.as_mut() else { return };
        let total = self.scan.map(PreScan::get);
        let progress = Progress::of(&self.session.tracker, total, self.begun.elapsed());
        let control = on_progress(&progress);
        self.obey(control);
    }

    fn obey(&self, control: Control) {
        if control == Control::Quit {
            self.session.quit();
        }
    }
}
