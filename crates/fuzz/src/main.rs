//! `haulage-fuzz TARGET FILE...`: runs saved inputs of a target within the limits.

use std::path::Path;
use std::process::ExitCode;

use fuzz_targets::limits;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((word, [])) if word == "--list" => list(),
        Some((name, files)) if !files.is_empty() => match fuzz_targets::by_name(name) {
            Some(target) => run(target, files),
            None => {
                eprintln!("haulage-fuzz: no target is called '{name}'; --list names them");
                ExitCode::from(2)
            }
        },
        _ => {
            eprintln!("usage: haulage-fuzz TARGET FILE... | haulage-fuzz --list");
            ExitCode::from(2)
        }
    }
}

/// A line a target: its name, its longest input in bytes, and what it is.
fn list() -> ExitCode {
    for target in fuzz_targets::TARGETS {
        println!("{}\t{}\t{}", target.name, target.input_bytes_max, target.about);
    }
    ExitCode::SUCCESS
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
