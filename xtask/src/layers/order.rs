//! The rule of layers: a file imports from its own layer and from those below it.

use super::imports::Import;
use super::table::Layer;

/// What breaks the rule, one line each. The first of `layers` is the top.
pub(super) fn faults(layers: &[Layer], files: &[String], imports: &[Import]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| place_of(layers, file).is_none()) {
        faults.push(format!("{file} is in no layer of xtask/src/layers/table.rs\n"));
    }
    for member in layers.iter().flat_map(Layer::members) {
        if !files.iter().any(|file| place_of(layers, file).is_some_and(|at| at.member == member)) {
            faults.push(format!("layer `{member}` of xtask/src/layers/table.rs has no file\n"));
        }
    }
    for import in imports {
        if let (Some(from), Some(to)) =
            (place_of(layers, &import.from), place_of(layers, &import.to))
            && to.depth < from.depth
        {
            faults.push(format!("{import}; {to} is above {from}\n"));
        }
    }
    faults
}

/// Where a file is among the layers.
struct Place<'a> {
    /// 0 at the top.
    depth: usize,
    /// The file or folder that the layer lists.
    member: &'a str,
    purpose: &'a str,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` ({})", self.member, self.purpose)
    }
}

/// By the longest listed path that `file` is at or in.
fn place_of<'a>(layers: &'a [Layer], file: &str) -> Option<Place<'a>> {
    let module = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    let holds = |member: &str| {
        module.strip_prefix(member).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let places = layers.iter().enumerate().flat_map(|(depth, layer)| {
        layer.members().map(move |member| Place { depth, member, purpose: layer.purpose })
    });
    places.filter(|place| holds(place.member)).max_by_key(|place| place.member.len())
}
