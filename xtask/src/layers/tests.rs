//! Small crates with a planted fault, and with what looks like one.

use super::table::{Layer, layer};
use super::*;

fn read_all(files: &[(&str, &str)]) -> CrateCode {
    let sources: BTreeMap<String, String> =
        files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned())).collect();
    CrateCode::read(&sources).unwrap()
}

/// The imports of a crate with these files, as `cargo xtask layers --edges` prints them.
#[track_caller]
fn check_imports(files: &[(&str, &str)], expected: &[&str]) {
    let found = edges("c", &read_all(files).imports).replace("c/src/", "");
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{files:?}");
}

#[track_caller]
fn check_faults(rule: &Rule, files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(faults(rule, &read_all(files)), expected, "{files:?}");
}

const TWO: &str = "mod a; mod b;";

#[test]
fn a_circle_is_found_however_a_file_names_the_other() {
    let b = "use crate::a::A;\npub fn b(_: A) {}";
    for a in [
        "use crate::b::b; pub struct A;",
        "use super::{b::b as other}; pub struct A;",
        "pub struct A; fn f() { crate::b::b(A); }",
        "pub struct A; fn f() { use crate::b::b; b(A) }",
        "use crate::b; pub struct A; fn f() { b::b(A); }",
        "use crate::b::{self}; pub struct A; fn f() { b::b(A); }",
        "use super::b as other; pub struct A; fn f() { other::b(A); }",
        "use crate::b::*; pub struct A; fn f() { b(A); }",
        "pub struct A; fn f() { use crate::b::*; b(A) }",
        "pub struct A; impl A { fn f() { super::b::b(A); } }",
        "pub struct A; fn f() { println!(\"{:?}\", crate::b::b(A)); }",
        "use crate::b; pub struct A; fn f() { assert_eq!((), vec![(0, b::b(A))][0].1); }",
        "pub struct A; macro_rules! m { () => { $crate::b::b($crate::a::A) }; }",
        "pub struct A; #[arg(value_parser = crate::b::b)] struct B;",
        "pub struct A; struct B { #[serde(default = \"crate::b::b\")] field: u8 }",
        "pub struct A; #[serde(from = \"Vec<crate::b::b>\")] struct B;",
        "pub struct A; mod inner { fn f() { super::super::b::b(super::A); } }",
        "pub struct A; fn f() { crate::b::made_by_a_macro(); }",
        "pub struct A; macro_rules! m { ($name:ident) => { $crate::b::$name() }; }",
        "pub struct A; macro_rules! m { () => { use crate::{b::{b as c}, x::X}; } }",
        "pub struct A; macro_rules! m { () => { use $crate::b::*; } }",
        "pub struct A; fn f() { if true { use super::b as other; other::b(A); } }",
        "pub struct A; fn f() { fn g() { let _: <crate::b::T as Clone>::T; } }",
        "pub struct A; mod inner { mod deep { fn f() { super::super::super::b::b() } } }",
        "pub struct A; pub(crate) use crate::b::b;",
        "pub struct A; pub use super::b::*;",
        "pub struct A; pub(self) use super::b::b;",
        "pub struct A; mod inner { pub(super) use crate::b::b as c; }",
        "extern crate self as own; pub struct A; fn f() { own::b::b(A); }",
        "pub struct A; #[cfg(not(test))] use crate::b::b;",
        "pub struct A; #[cfg(any(test, unix))] use crate::b::b;",
        "use crate::r#b::r#b as other; pub struct A;",
        "pub struct A; fn f() { format!(\"{:?}\", crate::r#b::b(A)); }",
        "pub struct A; fn b() { use crate::b; b::b(A); }",
    ] {
        let files = [("lib.rs", TWO), ("a.rs", a), ("b.rs", b)];
        let circles = graph::circles(&read_all(&files).imports);
        assert_eq!(circles.len(), 1, "{a}");
        assert_eq!(circles[0].files, ["src/a.rs", "src/b.rs"], "{a}");
    }
}

#[test]
fn a_circle_is_found_through_re_exports() {
    for (root, re_export, name) in [
        ("mod a; mod dir;", "mod b; pub use b::B;", "crate::dir::B"),
        ("mod a; mod dir;", "mod b; pub(crate) use self::b::B as C;", "crate::dir::C"),
        ("mod a; mod dir;", "mod b; pub use b::*;", "super::dir::B"),
        ("mod a; mod dir; pub use dir::B;", "mod b; pub use b::B;", "crate::B"),
        ("mod a; mod dir; pub use dir::*;", "mod b; pub use b::*;", "crate::B"),
        (
            "mod a; mod dir;",
            "mod b; mod prelude { pub use super::b::B; } pub use prelude::*;",
            "crate::dir::B",
        ),
        // What only imports a name for itself has it for those below too.
        ("mod a; mod dir; use dir::B;", "mod b; pub use b::B;", "super::B"),
    ] {
        let a = format!("use {name}; pub struct A;");
        let b = "use crate::a::A; pub struct B(A);";
        let files = [("lib.rs", root), ("a.rs", &a), ("dir/mod.rs", re_export), ("dir/b.rs", b)];
        let circles = graph::circles(&read_all(&files).imports);
        assert_eq!(circles.len(), 1, "{files:?}");
        assert_eq!(circles[0].files, ["src/a.rs", "src/dir/b.rs"], "{files:?}");
    }
}

#[test]
fn a_circle_is_found_through_a_method_that_another_file_defines() {
    for (a, impls) in [
        ("pub struct A; fn f(a: A) { a.m(); }", "impl A { pub fn m(&self) {} }"),
        (
            "pub struct A; impl A { fn f(&self) { self.r#m::<u8>(); } }",
            "impl A { fn m<T>(&self) {} }",
        ),
        ("pub struct A; fn f() { A::m(); }", "impl A { pub fn m() {} }"),
        ("pub struct A; impl A { fn f() { Self::m(); } }", "impl A { pub fn m() {} }"),
        ("pub struct A; fn f() { vec![A].map(A::m); }", "impl A { pub fn m(&self) {} }"),
        ("pub struct A; fn f(a: A) { vec![a.m()]; }", "impl A { pub fn m(&self) {} }"),
        (
            "pub struct A; fn f(a: A) { a.m(); }",
            "mod deep { impl super::A { pub fn m(&self) {} } }",
        ),
    ] {
        let b = format!("use crate::a::A; {impls}");
        let circles =
            graph::circles(&read_all(&[("lib.rs", TWO), ("a.rs", a), ("b.rs", &b)]).imports);
        assert_eq!(circles.len(), 1, "{a}");
    }
    // Which method a call means is not known.
    for b in [
        "use crate::a::A; impl A { fn m(&self) {} } struct B; impl B { fn m(&self) {} }",
        "use crate::a::A; impl A { fn m(&self) {} } trait B { fn m(&self) {} }",
        "use crate::a::A; trait M { fn m(&self) {} } impl M for A { fn m(&self) {} }",
    ] {
        let a = "pub struct A; fn f(a: A) { a.m(); }";
        check_imports(&[("lib.rs", TWO), ("a.rs", a), ("b.rs", b)], &["b.rs -> a.rs: A"]);
    }
}

#[test]
fn an_import_for_tests_does_not_count() {
    for a in [
        "#[cfg(test)] use crate::b::B;",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] mod tests;",
        "#[cfg(all(test, target_os = \"linux\"))] use crate::b::B;",
        "#[cfg(all(unix, any(test)))] fn f(_: crate::b::B) {}",
        "#![cfg(test)] use crate::b::B;",
        "#[test] fn f() { crate::b::B; }",
        "struct A; impl A { #[cfg(test)] fn f(_: crate::b::B) {} }",
        "trait A { #[cfg(test)] fn f(_: crate::b::B) {} }",
        "struct A { #[cfg(test)] b: crate::b::B }",
        "enum A { #[cfg(test)] B(crate::b::B), C }",
        "fn f() { #[cfg(test)] let b = crate::b::B; }",
        "fn f() { #[cfg(test)] crate::b::f(); }",
        "fn f() { #[cfg(test)] { crate::b::f(); } }",
        "fn f() { #[cfg(test)] vec![crate::b::f()]; }",
        "fn f() { match 1 { #[cfg(test)] 2 => crate::b::f(), _ => {} } }",
        "fn f() { A { #[cfg(test)] b: crate::b::f() }; }",
    ] {
        let b = "pub struct B; pub fn f() {}";
        check_imports(
            &[("lib.rs", TWO), ("a.rs", a), ("a/tests.rs", "use crate::b::B;"), ("b.rs", b)],
            &[],
        );
    }
}

#[test]
fn declaring_and_re_exporting_own_modules_are_no_imports() {
    let b = "pub struct B; pub fn f() {}";
    for root in [
        "pub mod b;",
        "mod b; pub use b::B;",
        "mod b; pub(crate) use crate::b::{B, f as g};",
        "mod b; pub use b::*;",
        "mod b; pub mod c { pub use super::b::B; }",
        "mod b; pub(in crate) use b::B;",
    ] {
        check_imports(&[("lib.rs", root), ("b.rs", b)], &[]);
    }
    // The file uses it besides.
    let root = "mod b; pub use b::B; pub fn g() -> B { b::f(); B }";
    check_imports(&[("lib.rs", root), ("b.rs", b)], &["lib.rs -> b.rs: B, f"]);
}

#[test]
fn names_of_other_crates_are_no_imports() {
    for a in [
        "use b::B;",
        "use ::b::B; fn f() { ::b::f(); }",
        "fn f() { println!(\"{}\", ::b::f()); }",
        "use std::fs::File; pub(in crate::b) fn f(b: File) { b.f(); vec![b.f]; }",
        "pub use ::b::f; fn g() { m!(1 => ::b::f(), x()?.f(), x.f, ::b::f::f); }",
        "use super::Errno;",
    ] {
        let root = "mod a; mod b; pub use rustix::io::Errno;";
        let b = "pub struct B; pub fn f() {}";
        check_imports(&[("main.rs", root), ("a.rs", a), ("b.rs", b)], &[]);
    }
}

#[test]
fn a_name_may_be_a_module_and_a_function() {
    check_imports(
        &[
            ("lib.rs", "mod a; mod sys;"),
            ("a.rs", "use crate::sys::usage; fn f() { usage(); crate::sys::usage(); }"),
            ("sys/mod.rs", "mod usage; pub use usage::{Usage, usage};"),
            ("sys/usage.rs", "pub struct Usage; pub fn usage() {}"),
        ],
        &["a.rs -> sys/usage.rs: usage"],
    );
}

#[test]
fn a_macro_belongs_to_the_file_around() {
    check_imports(
        &[
            ("lib.rs", "macro_rules! row { () => {} } mod a; #[macro_use] mod b;"),
            ("a.rs", "row!(); crate::all!(); fn f() { crate::all!() }"),
            ("b.rs", "#[macro_export] macro_rules! all { () => {} }"),
        ],
        &["a.rs -> b.rs: all", "a.rs -> lib.rs: row"],
    );
    check_imports(
        &[
            ("lib.rs", "#[macro_use] mod b; mod a;"),
            ("a.rs", "fn f() { format!(\"{}\", row!()) }"),
            ("b.rs", "macro_rules! row { () => {} }"),
        ],
        &["a.rs -> b.rs: row"],
    );
}

#[test]
fn modules_are_found_where_the_compiler_finds_them() {
    check_imports(
        &[
            ("main.rs", "mod a; #[path = \"elsewhere/c.rs\"] mod d; mod inline { mod e; }"),
            ("a.rs", "mod b; use b::deep::B; use crate::d::D; struct A(crate::inline::e::E);"),
            ("a/b/mod.rs", "pub mod deep;"),
            ("a/b/deep.rs", "pub struct B;"),
            ("elsewhere/c.rs", "pub struct D;"),
            ("inline/e.rs", "pub struct E; fn f() { super::super::a::g() }"),
        ],
        &[
            "a.rs -> a/b/deep.rs: B",
            "a.rs -> elsewhere/c.rs: D",
            "a.rs -> inline/e.rs: E",
            "inline/e.rs -> a.rs: g",
        ],
    );
}

#[test]
fn globs_and_names_that_lead_to_themselves_end() {
    check_imports(
        &[
            ("lib.rs", "mod a; mod b; use x::y as x; use missing::missing;"),
            ("a.rs", "pub use super::b::*; pub struct A; fn f() { nothing(); x::y(); }"),
            ("b.rs", "pub use super::a::*; fn f(_: A) { super::x::z(); }"),
        ],
        &["a.rs -> b.rs: *", "b.rs -> a.rs: *, A"],
    );
}

#[test]
fn the_shortest_circle_is_told_with_its_lines() {
    check_faults(
        &Rule::NoCircle,
        &[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nfn f() { d::D; }"),
            ("a.rs", "\nuse crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::c::{\n    C, D,\n};\npub struct B;"),
            (
                "c.rs",
                "pub struct C; pub struct D;\nfn f() {\n    format!(\"{}\", crate::a::A);\n    \
              crate::b::B\n}",
            ),
            ("d.rs", "use crate::a::A;\npub struct D;"),
        ],
        &["3 files import each other in a circle:\n  src/b.rs:2 -> src/c.rs: C\n  \
           src/c.rs:4 -> src/b.rs: B\n  This is the shortest circle of: src/a.rs src/b.rs src/c.rs\n"],
    );
    check_faults(
        &Rule::NoCircle,
        &[("lib.rs", "mod a; use a::A;"), ("a.rs", "pub struct A;")],
        &[],
    );
}

const LAYERS: &[Layer] = &[
    layer("lib", "the interface"),
    layer("walk", "the traversal"),
    layer("data", "the bytes"),
    layer("data/choice", "which engine"),
    layer("fs list", "the kernel"),
];

#[test]
fn an_import_against_the_layers_is_told() {
    let with = |fs: &'static str, choice: &'static str| {
        [
            ("lib.rs", "mod walk; mod data; mod fs; mod list; use walk::Walk; fn f(_: Walk) {}"),
            ("walk.rs", "mod step; use crate::data::Data; use step::Step; pub struct Walk;"),
            ("walk/step.rs", "pub struct Step;"),
            ("data/mod.rs", "mod choice; mod part; use crate::fs::Dir; use choice::Choice;"),
            ("data/part.rs", "pub struct Part;"),
            ("data/choice.rs", choice),
            ("fs/mod.rs", fs),
            ("list.rs", "use crate::fs::Dir; pub struct List;"),
        ]
    };
    let rule = Rule::Layers(LAYERS);
    check_faults(&rule, &with("pub struct Dir;", "pub struct Choice;"), &[]);
    check_faults(
        &rule,
        &with(
            "pub struct Dir;\n\nfn f(_: crate::walk::step::Step) {}",
            "pub struct Choice;\nuse super::part::Part;",
        ),
        &[
            "src/data/choice.rs:2 -> src/data/part.rs: Part; `data` (the bytes) is above \
             `data/choice` (which engine)\n",
            "src/fs/mod.rs:3 -> src/walk/step.rs: Step; `walk` (the traversal) is above `fs` \
             (the kernel)\n",
        ],
    );
    check_faults(
        &rule,
        &with("pub struct Dir;\npub(crate) use super::walk::step::Step;", "pub struct Choice;"),
        &["src/fs/mod.rs:2 -> src/walk/step.rs: Step; `walk` (the traversal) is above `fs` (the \
           kernel)\n"],
    );
}

#[test]
fn a_crate_that_names_itself_is_refused() {
    let sources = [("src/lib.rs".to_owned(), "extern crate self as own;".to_owned())];
    assert!(CrateCode::read(&BTreeMap::from(sources)).is_err());
}

#[test]
fn a_file_that_no_module_declares_is_told() {
    check_faults(
        &Rule::NoCircle,
        &[
            ("lib.rs", "mod a; #[cfg(test)] mod tests;"),
            ("a.rs", "include!(\"included.rs\"); macro_rules! m { () => { mod made; } }"),
            ("a/made.rs", ""),
            ("included.rs", ""),
            ("tests.rs", "mod table;"),
            ("tests/table.rs", ""),
        ],
        &["no `mod` declares src/a/made.rs\n", "no `mod` declares src/included.rs\n"],
    );
}

#[test]
fn a_crate_that_uses_one_that_the_table_does_not_allow_is_told() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace.dependencies]\ntree = { path = \"crates/tree\" }\nlab = { path = \"crates/lab\" }\n\
         anyhow = \"1\"\n",
    );
    write("crates/lab/Cargo.toml", "[dependencies]\nanyhow.workspace = true\n");
    write(
        "crates/tree/Cargo.toml",
        "[target.'cfg(unix)'.dependencies]\nlab.workspace = true\n[dev-dependencies]\ntree.workspace = true\n",
    );
    write("crates/new/Cargo.toml", "");
    let rule = |folder, uses| CrateRule { folder, uses, rule: Rule::NoCircle };
    let found = |uses| {
        let mut faults =
            crates::faults(root.path(), &[rule("crates/lab", ""), rule("crates/tree", uses)])
                .unwrap();
        assert_eq!(faults.pop().as_deref(), Some("crates/new is not in xtask/src/layers/table.rs"));
        faults
    };
    assert_eq!(found("lab"), [""; 0]);
    assert_eq!(
        found("tree"),
        [
            "crates/tree/Cargo.toml: xtask/src/layers/table.rs does not let this crate use `lab`",
            "crates/tree/Cargo.toml: does not use `tree`, which xtask/src/layers/table.rs lists",
        ]
    );
}

#[test]
fn a_file_without_a_layer_and_a_layer_without_a_file_are_told() {
    check_faults(
        &Rule::Layers(LAYERS),
        &[
            ("lib.rs", "mod walk; mod walker; mod data; mod fs;"),
            ("walk.rs", ""),
            ("walker.rs", ""),
            ("data.rs", ""),
            ("fs.rs", ""),
        ],
        &[
            "src/walker.rs is in no layer of xtask/src/layers/table.rs\n",
            "layer `data/choice` of xtask/src/layers/table.rs has no file\n",
            "layer `list` of xtask/src/layers/table.rs has no file\n",
        ],
    );
}

#[test]
fn the_line_is_that_of_the_first_use() {
    let a = "\n#[arg(value_parser = crate::b::f)]\nstruct A {\n    #[serde(with = \"crate::b::g\")]\n    \
             a: u8,\n}\nuse crate::b::{f,\n    h};\nfn i() { m!(1,\n    0..crate::b::I) }";
    let code = read_all(&[("lib.rs", TWO), ("a.rs", a), ("b.rs", "m!();")]);
    let lines: Vec<(&str, usize)> =
        code.imports.iter().map(|import| (import.name.as_str(), import.line)).collect();
    assert_eq!(lines, [("I", 10), ("f", 2), ("g", 4), ("h", 8)]);
}
