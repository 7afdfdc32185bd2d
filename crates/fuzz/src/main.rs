//! `haulage-fuzz TARGET FILE...`: runs saved inputs of a target within the limits.

use std::path::Path;
use std::process::ExitCode;

use fuzz_targets::limits;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, files)) = args.split_first().filter(|(_, files)| !files.is_empty()) else {
        eprintln!("usage: haulage-fuzz TARGET FILE...");
        return ExitCode::from(2);
    };
    match fuzz_targets::by_name(name) {
        Some(target) => run(target, files),
        None => {
            eprintln!("haulage-fuzz: no target is called '{name}'; see cargo xtask fuzz --list");
            ExitCode::from(2)
        }
    }
}

fn run(target: &fuzz_targets::Target, files: &[String]) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for file in files {
        let input = match std::fs::read(Path::new(file)) {
            Ok(input) => input,
            Err(error) => {
                eprintln!("haulage-fuzz: '{file}': {error}");
                return ExitCode::from(2);
            }
        };
        match limits::check(target, &input) {
            None => println!("{file}: no fault"),
            Some(fault) => {
                println!("{file}: {fault}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}
