//! The rule of layers: a file imports from its own layer and from those below it.

use super::imports::Import;
use super::table::Layer;

/// What breaks the rule, one line each. The first of `layers` is the top.
pub(super) fn faults(layers: &[Layer], files: &[String], imports: &[Import]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| layer_of(layers, file).is_none()) {
        faults.push(format!("{file} is in no layer; add it to xtask/src/layers/table.rs\n"));
    }
    for member in layers.iter().flat_map(Layer::members) {
        if !files.iter().any(|file| layer_of(layers, file).is_some_and(|(_, of)| of == member)) {
            faults.push(format!("layer `{member}` has no file\n"));
        }
    }
    for import in imports {
        let (from, to) = (layer_of(layers, &import.from), layer_of(layers, &import.to));
        if let (Some((from, below)), Some((to, above))) = (from, to)
            && to < from
        {
            faults.push(format!("{import}; layer `{above}` is above layer `{below}`\n"));
        }
    }
    faults
}

/// The position of the layer of `file`, 0 at the top, and the member of that layer that holds the file.
fn layer_of<'a>(layers: &'a [Layer], file: &str) -> Option<(usize, &'a str)> {
    let module = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    let holds = |member: &str| {
        module.strip_prefix(member).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let all = layers.iter().enumerate();
    all.flat_map(|(at, layer)| layer.members().map(move |member| (at, member)))
        .filter(|(_, member)| holds(member))
        .max_by_key(|(_, member)| member.len())
}
