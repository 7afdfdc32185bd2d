// Sorts tables, and copies them as CSV.

function valueOf(cell) {
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v || cell.textContent);
  return cell.textContent;
}

function sortBy(head) {
  const table = head.closest("table");
  const column = [...head.parentNode.children].indexOf(head);
  const descending = head.getAttribute("aria-sort") === "ascending";
  table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  const order = (a, b) => {
    const [one, other] = [valueOf(a.cells[column]), valueOf(b.cells[column])];
    // Empty cells come last in either order.
    if (one === "" || other === "") return (one === "") - (other === "");
    const less = typeof one === "number" && typeof other === "number"
      ? one - other
      : String(one).localeCompare(String(other), "en", { numeric: true });
    return descending ? -less : less;
  };
  rows.sort(order).forEach((row) => table.tBodies[0].append(row));
}

function csvOf(table) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (cells, text) => [...cells].map((cell) => quoted(text(cell))).join(",");
  const head = line(table.tHead.rows[0].cells, (cell) => cell.textContent);
  const body = [...table.tBodies[0].rows].map((row) => line(row.cells, (cell) => String(valueOf(cell))));
  return [head, ...body].join("\n") + "\n";
}

async function copyTable(button) {
  const text = csvOf(button.closest("details").querySelector("table"));
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers may refuse the clipboard to a page from disk. The old command needs a selection.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  say(done ? "Copied as CSV." : "The browser does not let this page copy.");
  const before = button.textContent;
  button.textContent = done ? "Copied" : "Not allowed";
  setTimeout(() => { button.textContent = before; }, 1500);
}

function say(words) {
  document.getElementById("said").textContent = words;
}

function watchTables() {
  document.querySelectorAll("table:not(.plain) th button").forEach((button) =>
    button.addEventListener("click", () => sortBy(button.parentNode)));
  document.querySelectorAll("button.copy").forEach((button) =>
    button.addEventListener("click", () => copyTable(button)));
  // A note says if columns are out of view. A closed table has no width yet.
  const widths = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const said = target.closest("details")?.querySelector(".wide");
      if (said) said.hidden = target.scrollWidth <= target.clientWidth + 1;
    }
  });
  document.querySelectorAll("details.table .scroll").forEach((box) => widths.observe(box));
}
