//! The program `haulage-mpi`, which mpirun or srun starts once for each rank.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use haulage_mpi::network::Network;
use haulage_mpi::rank;

#[global_allocator]
static ALLOCATOR: sys::Allocator = sys::Allocator;

sys::program!(run);

const USAGE: &str = "\
Usage: mpirun [OPTION]... haulage-mpi cp [OPTION]... SOURCE... DEST

Copies as 'haulage cp' does, by all processes that mpirun or srun starts.
'haulage-mpi cp --help' lists the options.
";

fn run() -> ExitCode {
    haulage_cli::install_last_words();
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    use_shared_memory_of_one_host();
    let Some(mut network) = Network::join() else {
        eprintln!("haulage-mpi: MPI cannot be used by a process with several threads");
        return ExitCode::FAILURE;
    };
    let word = arguments.first().map(|word| word.as_encoded_bytes().to_vec());
    let is_first = haulage_mpi::transport::Transport::rank(&network) == 0;
    match word.as_deref() {
        Some(b"cp") => ExitCode::from(rank::run(&mut network, arguments.split_off(1))),
        Some(b"--help" | b"-h") => print(is_first, USAGE),
        Some(b"--version" | b"-V") => print(is_first, &haulage_cli::version_line("haulage-mpi")),
        _ => {
            if is_first {
                eprint!("haulage-mpi: the only command is cp\n{USAGE}");
            }
            ExitCode::from(2)
        }
    }
}

/// If all ranks are on this host, tells Open MPI not to look for fast networks between hosts, which takes
/// longer than the rest of its start. What the user has chosen stays.
fn use_shared_memory_of_one_host() {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let ranks: Option<u32> = number("OMPI_COMM_WORLD_SIZE");
    let is_one_host = ranks.is_some() && ranks == number("OMPI_COMM_WORLD_LOCAL_SIZE");
    let has_chosen =
        ["OMPI_MCA_pml", "OMPI_MCA_btl"].map(std::env::var_os).iter().any(Option::is_some);
    if is_one_host && !has_chosen {
        // If it cannot be set, the start takes longer.
        sys::set_variable("OMPI_MCA_pml", "ob1");
    }
}

/// Prints a text, once for all ranks.
fn print(is_first: bool, text: &str) -> ExitCode {
    match is_first.then(|| std::io::stdout().write_all(text.as_bytes())) {
        Some(Err(_)) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
