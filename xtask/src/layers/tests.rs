//! Small crates with a planted fault, and with what looks like one.

use super::*;

fn sources(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// The imports of a crate with these files, by file, without their lines.
#[track_caller]
fn check_imports(files: &[(&str, &str)], expected: &[&str]) {
    let imports = Crate::read(&sources(files)).expect("read").imports();
    let mut found: Vec<String> = imports
        .iter()
        .map(|Import { from, to, name, .. }| format!("{from} -> {to}: {name}"))
        .collect();
    found.dedup();
    assert_eq!(found, expected, "{files:?}");
}

#[track_caller]
fn check_faults(layers: &[&str], files: &[(&str, &str)], expected: &[&str]) {
    let layers: Vec<String> = layers.iter().map(|&layer| layer.to_owned()).collect();
    let sources = sources(files);
    let found = broken(&layers, &sources, &Crate::read(&sources).expect("read"));
    assert_eq!(found, expected, "{files:?}");
}

const TWO: &str = "mod a; mod b;";

#[test]
fn an_import_is_found_however_a_file_names_the_other() {
    let b = "pub fn b() {} pub struct B; impl B { fn f(&self) {} }";
    for (a, name) in [
        ("use crate::b::b; pub struct A;", "b"),
        ("use super::{b::b as other}; pub struct A;", "b"),
        ("pub struct A; fn f() { crate::b::b(A); }", "b"),
        ("pub struct A; fn f() { use crate::b::b; b(A) }", "b"),
        ("use crate::b; pub struct A; fn f() { b::b(A); }", "b"),
        ("use crate::b::{self}; pub struct A; fn f() { b::b(A); }", "b"),
        ("use super::b as other; pub struct A; fn f() { other::b(A); }", "b"),
        ("use crate::b::*; pub struct A; fn f() { b(A); }", "*"),
        ("pub struct A; fn f() { use crate::b::*; b(A) }", "*"),
        ("pub struct A; impl A { fn f() { super::b::b(A); } }", "b"),
        ("pub struct A; fn f() { println!(\"{:?}\", crate::b::b(A)); }", "b"),
        ("use crate::b; pub struct A; fn f() { assert_eq!((), vec![(0, b::b(A))][0].1); }", "b"),
        ("pub struct A; macro_rules! m { () => { $crate::b::b($crate::a::A) }; }", "b"),
        ("pub struct A; #[arg(value_parser = crate::b::b)] struct B;", "b"),
        ("pub struct A; struct B { #[serde(default = \"crate::b::b\")] field: u8 }", "b"),
        ("pub struct A; #[serde(from = \"Vec<crate::b::B>\")] struct B;", "B"),
        ("pub struct A; mod inner { fn f() { super::super::b::b(super::A); } }", "b"),
        ("pub struct A; fn f() { crate::b::made_by_a_macro(); }", "made_by_a_macro"),
        ("pub struct A; macro_rules! m { ($name:ident) => { $crate::b::$name() }; }", "name"),
        ("pub struct A; macro_rules! m { () => { use crate::{b::{b as c}}; } }", "b"),
        ("pub struct A; fn f() { if true { use super::b as other; other::b(A); } }", "b"),
        ("pub struct A; fn f() { fn g() { let _: <crate::b::T as Clone>::T; } }", "T"),
        ("pub struct A; mod inner { mod deep { fn f() { super::super::super::b::b() } } }", "b"),
        ("pub struct A; pub(crate) use crate::b::b;", "b"),
        ("pub struct A; pub use super::b::*;", "*"),
        ("pub struct A; mod inner { pub(super) use crate::b::b as c; }", "b"),
        ("pub struct A; #[cfg(not(test))] use crate::b::b;", "b"),
        ("pub struct A; #[cfg(any(test, unix))] use crate::b::b;", "b"),
        ("use crate::r#b::r#b as other; pub struct A;", "b"),
        ("pub struct A; fn f() { for at in 0..crate::b::b() {} }", "b"),
    ] {
        check_imports(&[("lib", TWO), ("a", a), ("b", b)], &[&format!("a -> b: {name}")]);
    }
}

#[test]
fn a_re_export_counts_for_the_file_that_defines_the_name() {
    for (root, re_export, name) in [
        ("mod a; mod dir;", "mod b; pub use b::B;", "crate::dir::B"),
        ("mod a; mod dir;", "mod b; pub(crate) use self::b::B as C;", "crate::dir::C"),
        ("mod a; mod dir; pub use dir::B;", "mod b; pub use b::B;", "crate::B"),
    ] {
        let a = format!("use {name}; pub struct A;");
        let files = [("lib", root), ("a", &a), ("dir/mod", re_export), ("dir/b", "pub struct B;")];
        check_imports(&files, &["a -> dir/b: B"]);
    }
    // A module and a function may have the same name.
    check_imports(
        &[
            ("lib", "mod a; mod sys;"),
            ("a", "use crate::sys::usage; fn f() { usage(); crate::sys::usage(); }"),
            ("sys/mod", "mod usage; pub use usage::{Usage, usage};"),
            ("sys/usage", "pub struct Usage; pub fn usage() {}"),
        ],
        &["a -> sys/usage: usage"],
    );
}

#[test]
fn what_is_no_import_does_not_count() {
    for a in [
        // For tests alone.
        "#[cfg(test)] use crate::b::B;",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] mod tests;",
        "#[cfg(all(test, target_os = \"linux\"))] use crate::b::B;",
        "#[test] fn f() { crate::b::B; }",
        "#[test] #[ignore] fn f<A, B>() { crate::b::B; }",
        "struct A; impl A { #[cfg(test)] fn f(_: crate::b::B) {} }",
        "struct A { #[cfg(test)] b: crate::b::B }",
        "enum A { #[cfg(test)] B(crate::b::B), C }",
        "fn f() { #[cfg(test)] let b = crate::b::B; }",
        "fn f() { #[cfg(test)] crate::b::f(); }",
        "fn f() { match 1 { #[cfg(test)] 2 => crate::b::f(), _ => {} } }",
        // Of another crate, and no names.
        "use b::B;",
        "use ::b::B; fn f() { ::b::f(); }",
        "use std::fs::File; pub(in crate::b) fn f(b: File) { b.f(); vec![b.f]; }",
        "use super::Errno; fn f() { println!(\"crate::b::f\"); }",
    ] {
        let root = "mod a; mod b; pub use rustix::io::Errno;";
        let b = "pub struct B; pub fn f() {}";
        let files = [("main", root), ("a", a), ("a/tests", "use crate::b::B;"), ("b", b)];
        check_imports(&files, &[]);
    }
    for root in [
        "mod b; pub use b::B;",
        "mod b; pub(crate) use crate::b::{B, f as g};",
        "mod b; pub use b::*;",
        "mod b; pub(in crate) use b::B;",
    ] {
        check_imports(&[("lib", root), ("b", "pub struct B; pub fn f() {}")], &[]);
    }
}

#[test]
fn what_a_file_re_exports_and_uses_is_an_import() {
    let root = "mod b; pub use b::B; pub fn g() -> B { b::f(); B }";
    let files = [("lib", root), ("b", "pub struct B; pub fn f() { use B::*; }")];
    check_imports(&files, &["lib -> b: B", "lib -> b: f"]);
}

#[test]
fn modules_are_found_where_the_compiler_finds_them() {
    check_imports(
        &[
            ("main", "mod a;"),
            ("a", "mod b; use b::deep::B;"),
            ("a/b/mod", "pub mod deep;"),
            ("a/b/deep", "pub struct B;"),
            ("bin/other", "mod c; use c::C;"),
            ("bin/c", "pub struct C;"),
        ],
        &["a -> a/b/deep: B", "bin/other -> bin/c: C"],
    );
    // Names that lead to themselves end.
    check_imports(
        &[
            ("lib", "mod a; mod b; use x::y as x; use missing::missing;"),
            ("a", "pub use super::b::*; pub struct A; fn f() { nothing(); x::y(); }"),
            ("b", "pub use super::a::*; fn f(_: A) { super::x::z(); }"),
        ],
        &["a -> b: *", "b -> a: *"],
    );
}

#[test]
fn the_shortest_circle_is_told_with_its_lines() {
    check_faults(
        &["*"],
        &[
            ("lib", "mod a;\nmod b;\nmod c;\nfn f() { a::A; }"),
            ("a", "\nuse crate::b::B;\npub struct A;"),
            ("b", "use crate::c::{\n    C, D,\n};\npub struct B;"),
            ("c", "pub struct C; pub struct D;\nfn f() {\n    (crate::a::A,\n    crate::b::B)\n}"),
        ],
        &["files import each other in a circle:\n  b:2 -> c: C\n  c:4 -> b: B"],
    );
}

#[test]
fn an_import_against_the_layers_is_told() {
    let layers = ["lib", "walk", "data", "data/choice", "*"];
    let check = |fs: &str, choice: &str, expected: &[&str]| {
        let files = [
            ("lib", "mod walk; mod data; mod fs; mod list; use walk::Walk; fn f(_: Walk) {}"),
            ("walk", "mod step; use crate::data::Data; use step::Step; pub struct Walk;"),
            ("walk/step", "pub struct Step;"),
            ("data/mod", "mod choice; mod part; use crate::fs::Dir; use choice::Choice;"),
            ("data/part", "pub struct Part;"),
            ("data/choice", choice),
            ("fs/mod", fs),
            ("list", "use crate::fs::Dir; pub struct List;"),
        ];
        check_faults(&layers, &files, expected);
    };
    check("pub struct Dir;", "pub struct Choice;", &[]);
    check(
        "pub struct Dir;\n\nfn f(_: crate::walk::step::Step) {}",
        "pub struct Choice;\nuse super::part::Part;",
        &[
            "data/choice:2 -> data/part: Part; `data` is above `data/choice`",
            "fs/mod:3 -> walk/step: Step; `walk` is above `*`",
        ],
    );
    check(
        "pub struct Dir;\npub(crate) use super::walk::step::Step;",
        "pub struct Choice;",
        &["fs/mod:2 -> walk/step: Step; `walk` is above `*`"],
    );
}

#[test]
fn files_without_a_module_or_a_layer_and_layers_without_a_file_are_told() {
    check_faults(
        &["lib", "a", "gone"],
        &[
            ("lib", "mod a; mod b; \n#[cfg(test)]\nmod tests;"),
            ("a", ""),
            ("b", ""),
            ("left", ""),
            ("tests", "mod table;"),
            ("tests/table", ""),
        ],
        &["no `mod` declares src/left.rs", "src/b.rs is in no layer", "layer `gone` has no file"],
    );
}

#[test]
fn a_crate_that_uses_one_that_it_may_not_use_is_told() {
    let root = tempfile::tempdir().expect("created");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    write(
        "Cargo.toml",
        "[workspace.dependencies]\ntree = { path = \"crates/tree\" }\nlab = { path = \"crates/lab\" }\n\
         anyhow = \"1\"\n",
    );
    write(
        "crates/tree/Cargo.toml",
        "[target.'cfg(unix)'.dependencies]\nlab.workspace = true\n[dev-dependencies]\ntree.workspace = true\n",
    );
    let found = |uses: &str| {
        let allowed = BTreeSet::from([uses.to_owned()]);
        used(root.path(), &root.path().join("crates/tree"), &allowed).expect("read")
    };
    assert_eq!(found("lab"), [""; 0]);
    assert_eq!(found("tree"), ["may not use `lab`", "does not use `tree`, which is listed"]);
}
