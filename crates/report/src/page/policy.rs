//! The content security policy of the page.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// A policy that allows these scripts and styles and no others. Each is the whole content of its
/// element. A script in the data of a run would not be executed, even if it were not escaped.
///
/// Style attributes are allowed, as plotly writes some. They cannot load anything from a network.
pub(super) fn policy(scripts: &[&str], styles: &[&str]) -> String {
    let hashes = |elements: &[&str]| elements.iter().map(|it| source(it)).collect::<Vec<_>>();
    // Plotly creates an empty style element and adds its rules by script.
    let styles: Vec<&str> = styles.iter().copied().chain([""]).collect();
    [
        "default-src 'none'".to_owned(),
        format!("script-src {}", hashes(scripts).join(" ")),
        format!("style-src-elem {}", hashes(&styles).join(" ")),
        "style-src-attr 'unsafe-inline'".to_owned(),
        "img-src data: blob:".to_owned(),
        // `default-src` does not apply to these two.
        "base-uri 'none'".to_owned(),
        "form-action 'none'".to_owned(),
    ]
    .join("; ")
}

fn source(element: &str) -> String {
    // An HTML parser replaces carriage returns by line feeds before the browser computes the digest.
    assert!(!element.contains('\r'), "scripts and styles end their lines with a line feed alone");
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(element)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_scripts_are_allowed() {
        // The expected digests were computed with sha256sum and base64.
        let alert = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
        let empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        let found = policy(&["alert(1)"], &[]);
        assert!(found.contains(&format!("script-src {alert}; style-src-elem {empty};")), "{found}");
    }
}
