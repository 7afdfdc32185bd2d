//! What a browser may do for a page: its content security policy.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// A policy that lets run these scripts and apply these styles, which are the whole content of their
/// elements, and nothing else: if a text of a run were ever taken for a part of the page, it would do
/// nothing.
///
/// Style attributes are allowed, since plotly writes some; no address of a network is fetched for them.
pub(super) fn policy(scripts: &[&str], styles: &[&str]) -> String {
    let hashes = |elements: &[&str]| elements.iter().map(|it| source(it)).collect::<Vec<_>>();
    // Plotly makes an empty style element and adds its rules one by one.
    let styles: Vec<&str> = styles.iter().copied().chain([""]).collect();
    [
        "default-src 'none'".to_owned(),
        format!("script-src {}", hashes(scripts).join(" ")),
        format!("style-src-elem {}", hashes(&styles).join(" ")),
        "style-src-attr 'unsafe-inline'".to_owned(),
        "img-src data: blob:".to_owned(),
        // These two do not follow from the default.
        "base-uri 'none'".to_owned(),
        "form-action 'none'".to_owned(),
    ]
    .join("; ")
}

fn source(element: &str) -> String {
    // A parser of HTML makes line feeds of carriage returns before anybody computes a digest.
    assert!(!element.contains('\r'), "scripts and styles end their lines with a line feed alone");
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(element)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_may_run() {
        // The digests are those that sha256sum and base64 give.
        let alert = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
        let empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        let found = policy(&["alert(1)"], &[]);
        assert!(found.contains(&format!("script-src {alert}; style-src-elem {empty};")), "{found}");
    }
}
