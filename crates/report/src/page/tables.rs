//! Tables as HTML; `tables.js` sorts and copies them.

use crate::plot::{Entry, Table};

use crate::escape::escaped;

pub(super) fn html(table: &Table) -> String {
    let numbers =
        |column: usize| table.rows.iter().all(|row| !matches!(row[column], Entry::Words(_)));
    let class = |column: usize| if numbers(column) { " class=\"n\"" } else { "" };
    let classes: Vec<&str> = (0..table.columns.len()).map(class).collect();
    let mut html = format!(
        "<details class=\"table\"><summary>{} <span class=\"count\">{} rows</span></summary><div \
         class=\"copying\"><button type=\"button\" class=\"copy\" aria-label=\"Copy as CSV: \
         {0}\">Copy as CSV</button><span class=\"wide\" hidden>This table is wider than the page. \
         Scroll sideways to see all of it.</span></div><div class=\"scroll\" role=\"region\" \
         aria-label=\"{0}\" tabindex=\"0\"><table><thead><tr>",
        escaped(&table.title),
        table.rows.len()
    );
    for (column, class) in table.columns.iter().zip(&classes) {
        let column = escaped(column);
        html.push_str(&format!(
            "<th scope=\"col\"{class}><button type=\"button\">{column}</button></th>"
        ));
    }
    html.push_str("</tr></thead><tbody>");
    // The end tags of rows and cells may be left out in HTML. A page has many.
    for row in &table.rows {
        html.push_str("<tr>");
        for entry in row {
            html.push_str(&match entry {
                Entry::Words(text) => format!("<td>{}", escaped(text)),
                Entry::Number { value, shown } => {
                    let value = shortened(*value).to_string();
                    let differs = if value == *shown { String::new() } else { format!("={value}") };
                    format!("<td data-v{differs}>{}", escaped(shown))
                }
                Entry::Nothing => "<td>".to_owned(),
            });
        }
    }
    html.push_str("</tbody></table></div></details>\n");
    html
}

/// `value` with four significant digits: no table shows more, and a page has many numbers.
fn shortened(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.3e}").parse().unwrap_or(value)
}
