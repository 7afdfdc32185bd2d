//! Brings a copy of a tree up to date: `mirror SRC DST [PATTERN]...`. What is newer in the source is
//! copied and verified, and a file is the old or the new one at every moment. What a pattern of
//! gitignore(5) matches is left out.

use std::process::ExitCode;

use haulage::Copy;
use haulage::events::Method;
use haulage::options::Existing;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [src, dst, patterns @ ..] = &arguments[..] else {
        eprintln!("usage: mirror SRC DST [PATTERN]...");
        return ExitCode::from(2);
    };
    let copy = Copy::new(src, dst).archive().existing(Existing::ReplaceOlder).atomic().verify();
    let copy = patterns.iter().fold(copy, Copy::exclude);
    let copy = copy.on_entry(|receipt| {
        if receipt.method == Method::Copied && receipt.data_bytes > 0 {
            println!("{}", receipt.dst.display());
        }
    });
    match copy.run() {
        Ok(report) => {
            eprintln!("{} files copied, {} bytes", report.files(), report.data_bytes());
            ExitCode::SUCCESS
        }
        Err(failed) => {
            failed.report.failures.iter().for_each(|error| eprintln!("mirror: {error}"));
            ExitCode::FAILURE
        }
    }
}
