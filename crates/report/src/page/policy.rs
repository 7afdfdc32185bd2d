//! The content security policy of the page.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// A policy that allows this script and this style and no others. Each is the whole content of its
/// element. A script in the data of a run would not be executed, even if it were not escaped.
pub(super) fn policy(script: &str, style: &str) -> String {
    [
        "default-src 'none'",
        &format!("script-src {}", source(script)),
        &format!("style-src {}", source(style)),
        // The empty icon.
        "img-src data:",
        // `default-src` does not apply to these two.
        "base-uri 'none'",
        "form-action 'none'",
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
    fn only_the_named_script_and_style_are_allowed() {
        // The expected digests were computed with sha256sum and base64.
        let alert = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
        let empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        let found = policy("alert(1)", "");
        assert!(found.contains(&format!("script-src {alert}; style-src {empty};")), "{found}");
    }
}
