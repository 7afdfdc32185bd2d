//! The crates that each crate may use, and the layers of each crate, the top first. A file imports from
//! its own layer and from those below it.

/// What is demanded of the imports of a crate.
pub(super) struct CrateRule {
    /// From the root of the repository.
    pub(super) folder: &'static str,
    /// The crates of this repository that it uses, by the names in its Cargo.toml, separated by spaces.
    pub(super) uses: &'static str,
    pub(super) rule: Rule,
}

/// How much is demanded.
pub(super) enum Rule {
    /// Nothing, for this reason. Each run prints it.
    #[allow(dead_code, reason = "for a crate whose files are being moved")]
    Skipped(&'static str),
    /// No files import each other in a circle.
    NoCircle,
    /// No circle, and no import from a layer further up. The first layer is the top.
    Layers(&'static [Layer]),
}

/// The files and folders of one rank.
pub(super) struct Layer {
    members: &'static str,
    /// What they are for, in a few words.
    pub(super) purpose: &'static str,
}

/// `members` are paths below `src/`, separated by spaces and without `.rs`: `sys` is src/sys.rs,
/// src/sys/mod.rs and all files in src/sys/. A layer may list a path inside the folder of another,
/// which is then without the files there.
pub(super) const fn layer(members: &'static str, purpose: &'static str) -> Layer {
    Layer { members, purpose }
}

impl CrateRule {
    /// The last part of the folder's name.
    pub(super) fn name(&self) -> &'static str {
        self.folder.rsplit('/').next().unwrap_or(self.folder)
    }
}

impl Layer {
    pub(super) fn members(&self) -> impl Iterator<Item = &'static str> {
        self.members.split_whitespace()
    }
}

const fn rule(folder: &'static str, uses: &'static str, layers: &'static [Layer]) -> CrateRule {
    CrateRule { folder, uses, rule: Rule::Layers(layers) }
}

/// The crates, those below before those that use them.
pub(super) const CRATES: &[CrateRule] = &[
    rule("crates/engines", "", ENGINES),
    rule("crates/testfs", "", TESTFS),
    rule("crates/cluster", "", CLUSTER),
    rule("crates/tree", "engines", TREE),
    rule("crates/lab", "engines", LAB),
    rule("crates/haulage", "engines tree", HAULAGE),
    rule("crates/report", "engines lab", REPORT),
    rule("crates/capi", "haulage", CAPI),
    rule("crates/cli", "engines haulage lab report", CLI),
    rule("crates/mpi", "cluster engines haulage haulage-cli", MPI),
    rule("crates/python", "haulage", PYTHON),
    rule("crates/fuzz", "engines lab report testfs tree", FUZZ),
    rule("xtask", "engines fuzz_targets lab testfs tree", XTASK),
];

const ENGINES: &[Layer] = &[
    layer("lib", "the public interface"),
    layer("profile", "which variant was measured to be the fastest in which situation"),
    layer("chain", "several variants, of which one continues where another is refused"),
    layer("variant_text", "the text form of a variant"),
    layer("table", "all engines"),
    layer(
        "copy_file_range direct direct_read dontcache io_uring memory mmap read_write reflink \
         sendfile splice stdio",
        "one engine",
    ),
    layer("probe", "whether a variant works between two files"),
    layer("variant", "an engine with its parameters, and how it is started"),
    layer("parallel status_flags", "copiers around a copier"),
    layer(
        "cursor positions presized stripes until_done",
        "steps that several engines have in common",
    ),
    layer("engine", "the contract of an engine"),
    layer("tuning", "parameters and their values"),
    layer("sys", "raw system calls and raw memory"),
    layer(
        "span moved bytes mount fs_types placement processor_cache",
        "plain data: spans, counts, mounts, types of file systems, processors",
    ),
];

const TREE: &[Layer] = &[
    layer("lib", "the public interface"),
    layer("walk", "operands, the traversal and its workers"),
    layer("copy", "one entry of each kind, from its source to its attributes"),
    layer("destination", "what exists at a destination, and how it is replaced"),
    layer("data", "the data of one file"),
    layer("data/engine_choice", "which engine moves it"),
    layer("metadata", "owner, mode, access control lists, extended attributes, times"),
    layer("entry", "one entry as the walk finds it, and its open source"),
    layer("shared", "registries that workers share, each with its own lock"),
    layer("security", "which links and files of the destination are trusted"),
    layer("concurrency", "how many workers run at once"),
    layer("report", "output: diagnostics, receipts, progress"),
    layer("request", "what the caller asks for"),
    layer("fs", "subjects of the kernel, without policy"),
    layer("lock hash", "locks that survive a panic, hash maps with a seed of their own"),
];

const HAULAGE: &[Layer] = &[
    layer("lib", "the public interface"),
    layer("copy file", "a copy of a tree, and of one file"),
    layer("session", "the observer of a copy with a report"),
    layer("error report", "what went wrong, and what was done"),
    layer("progress totals", "counts during and after a copy"),
    layer("cancel", "cancellation, and the answers of callbacks"),
    layer("events options partners prediction", "the values of the crates below"),
];

const CAPI: &[Layer] = &[
    layer("lib", "the library"),
    layer("copyfile", "the interface of copyfile(3)"),
    layer("exports", "the functions of haulage.h"),
    layer("state", "the state that they take"),
    layer("interface", "the constants and structures of haulage.h"),
    layer("border", "panics, errno and strings at the border to C"),
    layer("handle", "when a state is freed"),
];

const CLUSTER: &[Layer] = &[
    layer("lib", "the public interface"),
    layer("surplus", "how many names are worth giving"),
    layer("protocol", "one rank's part of the protocol"),
    layer("message", "what ranks tell each other"),
    layer("source_links neighbours", "who copies a linked file, who is asked"),
    layer("ids", "numbers of ranks and shares"),
];

const MPI: &[Layer] = &[
    layer("main", "the program"),
    layer("lib", "the public interface"),
    layer("rank", "one rank: its copy, and the other ranks as the copy calls them"),
    layer("driver", "between the copy, the protocol and the messages"),
    layer("network transport", "how messages travel"),
    layer("shared", "what the copy and the driver have in common"),
    layer("frame", "messages as bytes"),
    layer(
        "place ranges receipt_lines waiting_time",
        "what ranks must share, ranges of files, receipts on their way, and time without work",
    ),
];

const CLI: &[Layer] = &[
    layer("main", "the program"),
    layer("lib", "the subcommands"),
    layer("cp", "runs the copier"),
    layer("cp/docs", "help, manual page and the table for completions, from the flag table"),
    layer("cp/parse", "arguments to options, by the flag table"),
    layer("cp/flags", "the flag table"),
    layer("cp/builder", "options in command-line order, and which take precedence"),
    layer("cp/console", "the terminal as the observer of a copy"),
    layer("cp/interrupt", "the signals that end a copy"),
    layer("cp/progress", "the progress on a terminal"),
    layer("cp/receipt", "receipts and statistics"),
    layer("cp/job", "what a rank of a parallel job does in its own way"),
    layer("cp/command_line cp/environment", "what an invocation asks for"),
    layer("cp/values", "the values of options"),
    layer("cp/messages", "diagnostics, questions and announcements as text"),
    layer("cp/invocation cp/units", "the program's name, and quantities as text"),
    layer(
        "certify compare completions_command doctor engines_command man_command race report tune",
        "one subcommand each",
    ),
    layer("bench", "runs an experiment, for certify as well"),
    layer("scratch", "scratch directories, which are removed when a signal arrives"),
    layer("terminal", "arguments, and text on a terminal"),
    layer("docs", "manual pages and completions, from tables of options"),
    layer("sample_files", "files to try engines with"),
    layer("version", "which haulage this is"),
    layer("kernel", "which calls the kernel has"),
    layer("error_text last_words signals", "errors on one line, the signals that end a program"),
];

const REPORT: &[Layer] = &[
    layer("lib", "the public interface"),
    layer("page static_figures text", "what a reader sees: HTML, SVG and PNG, a terminal"),
    layer("report", "the figures of some runs"),
    layer("headline", "the answer in a sentence"),
    layer("figure", "one figure, as plain data"),
    layer("summary", "samples by cell and variant"),
    layer("source certificate machine", "a run directory, as it was written"),
    layer("canvas scale palette", "the shapes of a drawing, ticks and colours"),
    layer("plot", "the plain data of all figures: panels, axes, marks, tables"),
    layer("escape in_order", "texts and lists"),
];

const TESTFS: &[Layer] = &[
    layer("lib", "the public interface"),
    layer("disk faulty slow", "FUSE file systems of this process"),
    layer("lies", "what they say that is not so"),
    layer("nodes", "their files and directories"),
    layer(
        "scratch served program terminal tree",
        "mounted file systems, programs under test, comparison",
    ),
    layer("skip", "reports of tests that cannot run"),
];

const FUZZ: &[Layer] = &[
    layer("main", "runs saved inputs"),
    layer("lib", "the table of targets"),
    layer("targets", "what is done with an input, one file a format"),
    layer("limits scratch", "limits of an input, and where targets write"),
    layer("target", "what a target is"),
];

const LAB: &[Layer] = &[
    layer("lib", "the public interface"),
    layer("race", "the fastest variant for one source"),
    layer("tune", "the fastest variant for each situation"),
    layer("certificate", "comparisons whose truth is known"),
    layer("compare", "two runs of one experiment"),
    layer("verdict", "what a run concludes, and the words for it"),
    layer("conduct", "which cell gets the next session, and when to stop"),
    layer("session", "the session process, its workers and the protocol"),
    layer("wording", "findings as text"),
    layer("run_dir", "what a run leaves on disk, and its recovery"),
    layer("experiment", "experiments as files, and what one needs"),
    layer("analysis", "samples to findings, without I/O"),
    layer("search", "decisions that races and tuning share, without I/O"),
    layer("workload", "what one run does"),
    layer("trial", "one timed and verified copy"),
    layer("environment", "the machine and its file systems"),
    layer("scratch", "the one place that the lab writes to"),
    layer("page_cache", "sets and proves the state of the page cache"),
    layer("source", "the files to copy"),
    layer("clock", "the clock, and counters of the process and the processor"),
    layer("sample", "what a run measured, as rows of CSV files"),
    layer("definition", "an experiment as plain data"),
    layer("page_cache/state", "the names of the states"),
    layer("stats", "statistics, without I/O"),
    layer("process", "the lab's own processes"),
    layer("error", "what can go wrong, with its path"),
    layer("words", "quantities as text"),
];

const PYTHON: &[Layer] = &[
    layer("lib", "the extension module"),
    layer("files tree", "the copy of one file, and of a tree"),
    layer("run", "a copy beside the thread of the caller, which calls the callbacks"),
    layer("observer", "which entries are copied, and which have failed"),
    layer("callbacks keywords", "what the caller gives"),
    layer("failure progress receipt", "values for Python"),
    layer("call", "the call of a callable, in which the thread may end"),
];

const XTASK: &[Layer] = &[
    layer("main", "the command line of cargo xtask"),
    layer("python", "builds and tests the Python package"),
    layer("capi", "installs and tries libhaulage"),
    layer("check", "everything that a change has to pass"),
    layer("mpi", "builds and tests haulage-mpi"),
    layer("rerun", "runs tests, and those that failed once more"),
    layer("book", "the documents as a book"),
    layer("layers", "which file of a crate may import which"),
    layer("release_check", "whether a commit can be released"),
    layer("follow", "does what a document says"),
    layer("mutants", "plants faults that tests must find"),
    layer("fuzz", "searches for inputs that crash haulage"),
    layer("deny", "licences, versions and origins of the dependencies"),
    layer("dist", "makes packages and tries them"),
    layer("peers", "times haulage cp against other copiers"),
    layer("matrix", "file systems of other kernels, beside GNU cp"),
    layer("guest", "other kernels, in virtual machines"),
    layer("sweep", "faults, kills and limits, tried by the thousand"),
    layer("file_systems", "the file systems that tests copy on"),
    layer("namespace", "mounts that the kernel takes back"),
    layer("packages", "the programs that tests need"),
    layer("skips", "what a task could not do"),
    layer("command", "commands of other programs"),
];
