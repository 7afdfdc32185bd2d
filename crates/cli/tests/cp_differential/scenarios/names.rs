//! Names of odd bytes, in every message that shows them, in two character sets.

use super::Table;

const ODD: &str = "a=1; it's=2; it's\\s$x=2; nl\\n=3; q\"=4; \\xff\\xfe=5; \\xc3\\xa9=6; -dash=7; \
                   \\s=8; t/; back\\\\=9; c\\x01\\x7f=1; caf\\xc3=1; d\\nir/f\\xff=1; ?*[=1; \
                   \\xe2\\x80\\xa8=1; ~=1; #=1";

pub(crate) const TABLES: &[Table] = &[Table {
    trees: &[ODD],
    lines: &[
        "-v it's t", "-v it's\\s$x t", "-v nl\\n t", "-v q\" t", "-v \\xff\\xfe t",
        "-v \\xc3\\xa9 t", "-v -- -dash t", "-v ./-dash t", "-v \\s t", "-v back\\\\ t",
        "-v c\\x01\\x7f t", "-v caf\\xc3 t", "-rv d\\nir t", "-v ?*[ t", "-v \\xe2\\x80\\xa8 t",
        "-v ~ # t", "-bv a it's", "-bv a nl\\n", "-iv a \\xff\\xfe <y\\n", "-i a it's <n\\n",
        "LC_ALL=C.UTF-8 -v \\xc3\\xa9 t", "LC_ALL=C.UTF-8 -v caf\\xc3 t",
        "LC_ALL=C.UTF-8 -v \\xff\\xfe t", "LC_ALL=C.UTF-8 -v it's t",
        "LC_ALL=C.UTF-8 -v \\xe2\\x80\\xa8 t", "LC_ALL=C.UTF-8 -rv d\\nir t",
        "LC_ALL=C.UTF-8 -bv a \\xc3\\xa9", "LC_ALL= LANG=C.UTF-8 -v \\xc3\\xa9 t",
        "LC_ALL= LC_CTYPE=C.UTF-8 -v \\xc3\\xa9 t", "LC_ALL= LC_CTYPE=C LANG=C.UTF-8 -v \\xc3\\xa9 t",
        "d\\nir t", "it's it's", "nl\\n nl\\n", "\\xff\\xfe nosuch/x", "nosuch\\n t",
        "nosuch\\n nosuch\\t nofile\\r", "a it's t\\n", "-T a it's nl\\n", "-T it's\\n", "it's",
        "-t nl\\n a", "-t no\\n a", "-r t it's", "-rT it's t", "a no\\xff/", "a it's/",
        "--parents a it's", "--parents -v d\\nir/f\\xff t", "-r d\\nir d\\nir",
        "--preserve=it's a t", "--backup=\\xff a t", "--sparse=\\n a t", "-\\xc3\\xa9 a t",
        "--it's a t", "--it\\n a t", "it\\x27s\\n t",
    ],
}];
