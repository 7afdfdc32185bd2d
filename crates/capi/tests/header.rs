//! The committed header is what cbindgen makes of the sources.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_sources() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(home.join("cbindgen.toml")).expect("its settings");
    let builder = cbindgen::Builder::new().with_config(config).with_src(home.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate().expect("bindings").write(&mut made);
    let file = home.join("include/haulage.h");
    if std::env::var_os("HAULAGE_WRITE_HEADER").is_some() {
        std::fs::write(&file, &made).expect("written");
    }
    let found = std::fs::read_to_string(&file).expect("read");
    let made = String::from_utf8(made).expect("text");
    assert!(made == found, "HAULAGE_WRITE_HEADER=1 writes it:\n{made}");
}
