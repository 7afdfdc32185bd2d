//! A run of very many samples.

use std::fmt::Write as _;
use std::path::Path;

/// Samples of the large run.
const SAMPLES: u32 = 100_000;

/// Makes a run directory like the committed one's part `methods`, with very many samples. Its answers
/// are left for the reader to make from them.
pub(crate) fn run(home: &Path) {
    const VARIANTS: [&str; 18] = [
        "read_write:4K",
        "read_write:64K",
        "read_write:256K",
        "read_write:1M",
        "read_write:256K@2",
        "stdio:4K",
        "stdio:64K,setvbuf=64K",
        "mmap:256K,sequential",
        "mmap:8M,populate",
        "mmap:8M,populate,dst",
        "copy_file_range",
        "copy_file_range@2",
        "sendfile",
        "splice:1M,pipe=1M",
        "splice:1M,pipe=1M@2",
        "io_uring:256K,depth=8",
        "direct",
        "dontcache",
    ];
    const SIZES: [(&str, u64); 8] = [
        ("4K", 4 << 10),
        ("16K", 16 << 10),
        ("64K", 64 << 10),
        ("256K", 256 << 10),
        ("1M", 1 << 20),
        ("4M", 4 << 20),
        ("16M", 16 << 20),
        ("64M", 64 << 20),
    ];
    let quoted = |names: Vec<&str>| format!("{names:?}");
    let definition = format!(
        "schema = 1\nname = \"large\"\ntitle = \"t\"\nquestion = \"q\"\nanalysis = \"\"\n[[part]]\nname = \
         \"methods\"\nquestion = \"q\"\nworkload = \"copy\"\nvariants = {}\nsizes = {}\nbaseline = \
         \"read_write:64K\"\n[run]\nschema = 1\nsrc_dir = \"/a\"\ndst_dir = \"/b\"\nseed = 1\nscale = 1.0\n\
         haulage_version = \"0\"\n",
        quoted(VARIANTS.to_vec()),
        quoted(SIZES.iter().map(|size| size.0).collect())
    );
    let mut samples = String::from(
        "cell,part,workload,variant,file_bytes,files,shape,state_wanted,destination,at_once,session,\
         round,repeat,order_in_round,probe_ns,started_ns,ended_ns,elapsed_ns,state_proved,state_note,\
         refusals,counted\n",
    );
    let mut rng = fastrand::Rng::with_seed(7);
    let cells = SIZES.len() * VARIANTS.len();
    for run in 0..SAMPLES {
        let at = run as usize % cells;
        let (name, bytes) = SIZES[at / VARIANTS.len()];
        let variant = VARIANTS[at % VARIANTS.len()];
        let round = run / u32::try_from(cells).expect("few cells");
        // Each variant is a little faster than the one before.
        let share = 100 - at as u64 % VARIANTS.len() as u64 * 3;
        let elapsed = (5_000 + bytes / 4 + rng.u64(..bytes / 8 + 1_000)) * share / 100;
        let begun = u64::from(run) * 1_000_000;
        let _ = writeln!(
            samples,
            "methods/{name},methods,copy,\"{variant}\",{bytes},1,file,warm,fresh,1,{},{},0,1,{},{begun},{},\
             {elapsed},warm,,,true",
            round / 16 + 1,
            round % 16 + 1,
            900 + rng.u64(..200),
            begun + elapsed
        );
    }
    std::fs::write(home.join("experiment.toml"), definition).expect("written");
    std::fs::write(home.join("environment.json"), "{}").expect("written");
    std::fs::write(home.join("samples.csv"), samples).expect("written");
}
