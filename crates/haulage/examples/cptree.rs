//! Copies a tree with every attribute, and shows the progress: `cptree SRC DST`.

use std::process::ExitCode;

use haulage::{Control, Copy};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [src, dst] = &arguments[..] else {
        eprintln!("usage: cptree SRC DST");
        return ExitCode::from(2);
    };
    let copied = Copy::new(src, dst)
        .archive()
        .count_first()
        .progress(|progress| match progress.total.filter(|total| total.all) {
            Some(total) => eprint!("\r{} of {} bytes", progress.bytes, total.bytes),
            None => eprint!("\r{} bytes", progress.bytes),
        })
        .on_error(|error| {
            eprintln!("\ncptree: {error}");
            Control::Continue
        })
        .run();
    eprintln!();
    match copied {
        Ok(report) => {
            println!("{} files in {:.2} s", report.files(), report.elapsed.as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("cptree: {} errors", failed.report.failure_count);
            ExitCode::FAILURE
        }
    }
}
