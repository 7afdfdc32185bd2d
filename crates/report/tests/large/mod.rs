//! A run of very many samples.

use std::fmt::Write as _;
use std::path::Path;

/// Samples of the large run.
const SAMPLES: u32 = 10_000;

/// Makes a run directory like the committed one's part `methods`, with very many samples. Its answers
/// are left for the reader to make from them.
pub(crate) fn run(home: &Path) {
    const ENGINES: [&str; 9] = [
        "read_write:64K",
        "stdio:64K,setvbuf=64K",
        "mmap:8M,populate",
        "copy_file_range",
        "sendfile",
        "splice:1M,pipe=1M",
        "io_uring:256K,depth=8",
        "direct",
        "dontcache",
    ];
    let again = ENGINES.map(|engine| format!("{engine} [again]"));
    let variants = [ENGINES.map(str::to_owned), again].concat();
    let sizes: Vec<u64> = (0..8).map(|step| 4096 << (2 * step)).collect();
    let names: Vec<String> = sizes.iter().map(|&size| engines::Bytes(size).to_string()).collect();
    let definition = format!(
        "schema = 1\nname = \"large\"\ntitle = \"t\"\nquestion = \"q\"\nanalysis = \"\"\n[[part]]\nname = \
         \"methods\"\nquestion = \"q\"\nworkload = \"copy\"\nvariants = {variants:?}\nsizes = {names:?}\n\
         baseline = \"read_write:64K\"\n[run]\nschema = 1\nsrc_dir = \"/a\"\ndst_dir = \"/b\"\nseed = 1\n\
         scale = 1.0\nhaulage_version = \"0\"\n"
    );
    let mut samples = String::from(
        "cell,part,workload,variant,file_bytes,files,shape,state_wanted,destination,at_once,session,\
         round,repeat,order_in_round,probe_ns,started_ns,ended_ns,elapsed_ns,state_proved,state_note,\
         refusals,counted\n",
    );
    let mut rng = fastrand::Rng::with_seed(7);
    let cells = sizes.len() * variants.len();
    for run in 0..SAMPLES {
        let at = run as usize % cells;
        let (name, bytes) = (&names[at / variants.len()], sizes[at / variants.len()]);
        let variant = &variants[at % variants.len()];
        let round = run / u32::try_from(cells).expect("few cells");
        // Each variant is a little faster than the one before.
        let share = 100 - at as u64 % variants.len() as u64 * 3;
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
    std::fs::write(home.join("rounds.csv"), "").expect("written");
}
