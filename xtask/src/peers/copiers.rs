//! The programs that are compared, and their options for each job.

use std::ffi::OsString;
use std::fs::create_dir;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cases::Job;

/// One program in the comparison.
#[derive(Clone, Debug)]
pub(crate) struct Copier {
    /// The name of the program in the table.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    kind: &'static Kind,
    /// Options in addition to those of the job.
    options: Vec<String>,
}

/// How a program is called.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    options: fn(Job) -> Vec<&'static str>,
    /// Whether a source directory needs a trailing slash, so that its copy is the destination and
    /// not in it.
    slash: bool,
    /// A note about it in this job.
    note: fn(Job) -> &'static str,
}

/// The one that all others are compared with.
const CP: Kind =
    Kind { name: "cp", options: |job| job.cp_options().to_vec(), slash: false, note: |_| "" };

const HAULAGE: Kind = Kind {
    name: "haulage",
    options: |job| [&["cp"], job.cp_options()].concat(),
    slash: false,
    note: |_| "",
};

/// Programs that are compared if they are on the PATH.
const PEERS: &[Kind] = &[
    Kind { name: "cpz", options: |_| Vec::new(), slash: false, note: note_of_one_without_options },
    Kind {
        name: "xcp",
        options: |job| match job {
            Job::Archive | Job::ArchiveSparse => vec!["--no-progress", "-r", "--ownership"],
            // By default it sets modes and times, unlike `cp -r`.
            Job::Recursive => vec!["--no-progress", "-r", "--no-perms", "--no-timestamps"],
            Job::Plain => vec!["--no-progress", "--no-perms", "--no-timestamps"],
            Job::NoReflink | Job::Operands => {
                vec!["--no-progress", "--no-perms", "--no-timestamps", "--reflink=never"]
            }
        },
        slash: false,
        note: |_| "",
    },
    Kind { name: "fcp", options: |_| Vec::new(), slash: false, note: note_of_one_without_options },
    Kind {
        name: "rsync",
        options: |job| match job {
            Job::Archive => vec!["-aHAX", "--whole-file", "--inplace"],
            Job::ArchiveSparse => vec!["-aHAXS", "--whole-file"],
            // Without `l` it omits symbolic links.
            Job::Recursive => vec!["-rl", "--whole-file", "--inplace"],
            Job::Plain | Job::NoReflink | Job::Operands => vec!["--whole-file", "--inplace"],
        },
        slash: true,
        note: |_| "",
    },
];

fn note_of_one_without_options(job: Job) -> &'static str {
    if matches!(job, Job::NoReflink | Job::Operands) { "has no --reflink=never" } else { "" }
}

/// The names that `--peers` takes.
pub(crate) fn peer_names() -> impl Iterator<Item = &'static str> {
    PEERS.iter().map(|kind| kind.name)
}

impl Copier {
    fn of(name: &str, program: PathBuf, kind: &'static Kind, options: Vec<String>) -> Copier {
        Copier { name: name.to_owned(), program, kind, options }
    }

    /// GNU cp at `program`.
    pub(crate) fn cp(program: PathBuf) -> Copier {
        Copier::of(CP.name, program, &CP, Vec::new())
    }

    /// A build of haulage.
    pub(crate) fn haulage(name: &str, program: PathBuf) -> Copier {
        Copier::haulage_with(name, program, Vec::new())
    }

    /// A build of haulage with further options.
    pub(crate) fn haulage_with(name: &str, program: PathBuf, options: Vec<String>) -> Copier {
        Copier::of(name, program, &HAULAGE, options)
    }

    /// The other copiers called `names` that are on the PATH.
    pub(crate) fn peers_found(names: &[String]) -> Vec<Copier> {
        PEERS
            .iter()
            .filter(|kind| names.iter().any(|name| name == kind.name))
            .filter_map(|kind| {
                let program = on_path(kind.name)?;
                Some(Copier::of(kind.name, program, kind, Vec::new()))
            })
            .collect()
    }

    /// Whether it is a build of haulage.
    pub(crate) fn is_haulage(&self) -> bool {
        self.kind.name == HAULAGE.name
    }

    /// Whether it is the one that the others are compared with.
    pub(crate) fn is_cp(&self) -> bool {
        self.kind.name == CP.name
    }

    /// A note for the table: the release of a program other than haulage, and the options that it
    /// lacks.
    pub(crate) fn note(&self, job: Job) -> String {
        let version = if self.is_haulage() { String::new() } else { self.version() };
        let notes = [version.as_str(), (self.kind.note)(job)];
        notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// The command that copies `src` to `dst`, which does not exist yet: for operands it is made.
    ///
    /// # Errors
    /// If `src` cannot be read, or `dst` not be made.
    pub(crate) fn command(&self, job: Job, src: &Path, dst: &Path) -> io::Result<Command> {
        let mut operands = vec![OsString::from(src)];
        if job == Job::Operands {
            let paths = src.read_dir()?.map(|entry| Ok(entry?.path().into_os_string()));
            operands = paths.collect::<io::Result<_>>()?;
            operands.sort();
            create_dir(dst)?;
        } else if self.kind.slash && src.is_dir() {
            operands[0].push("/");
        }
        let mut command = Command::new(&self.program);
        command
            .args((self.kind.options)(job))
            .args(&self.options)
            .args(operands)
            .arg(dst)
            .env("LC_ALL", "C")
            // What haulage does on a machine that was not tuned.
            .env("HAULAGE_PROFILE", "")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(command)
    }

    /// The first line of `--version`. Empty if there is none.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(&self.program).arg("--version").stdin(Stdio::null()).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let words = text.lines().next().unwrap_or_default().split_whitespace();
        // rsync appends the version of its protocol.
        let own: Vec<&str> = words.take_while(|word| *word != "protocol").collect();
        own.join(" ")
    }
}

/// The path of `program` on the PATH.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(copier: &Copier, job: Job, src: &Path) -> String {
        let command = copier.command(job, src, Path::new("/dst")).expect("nothing is made");
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        args.join(" ")
    }

    #[test]
    fn haulage_and_cp_take_the_same_options() {
        let (cp, ours) = (Copier::cp("/bin/cp".into()), Copier::haulage("new", "/h".into()));
        for job in [Job::Archive, Job::Recursive, Job::Plain, Job::NoReflink] {
            let expected = format!("cp {}", line(&cp, job, Path::new("/src")));
            assert_eq!(line(&ours, job, Path::new("/src")), expected);
        }
        assert_eq!(line(&cp, Job::NoReflink, Path::new("/src")), "--reflink=never /src /dst");
    }

    #[test]
    fn each_file_of_the_source_is_an_operand() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["b", "a"] {
            std::fs::write(dir.path().join(name), "").expect("a file");
        }
        let (src, dst) = (dir.path(), dir.path().join("dst"));
        let command = Copier::cp("/bin/cp".into()).command(Job::Operands, src, &dst);
        let command = command.expect("the directory is made");
        let expected = ["--reflink=never".into(), src.join("a"), src.join("b"), dst.clone()];
        assert_eq!(command.get_args().map(PathBuf::from).collect::<Vec<_>>(), expected);
        assert!(dst.is_dir());
    }

    #[test]
    fn only_directories_get_the_slash() {
        let kind = PEERS.iter().find(|kind| kind.slash).expect("one of them");
        let copier = Copier::of(kind.name, "/r".into(), kind, Vec::new());
        assert!(line(&copier, Job::Archive, Path::new("/proc")).ends_with(" /proc/ /dst"));
        let file = Path::new("/proc/version");
        assert!(line(&copier, Job::Archive, file).ends_with(" /proc/version /dst"));
    }
}
