// Filters, values under the pointer, and the slider of ε. The address keeps what the reader chose.

const VARIANTS = JSON.parse(document.getElementById("variants").textContent)
  .map(([name, engine]) => ({ name, engine }));
const GROUPS = [...document.querySelectorAll(".group")];
const DRAWINGS = [...document.querySelectorAll(".drawing")];
const HEIGHTS = new Map(DRAWINGS.map((drawing) => [drawing, Number(drawing.getAttribute("height"))]));
const SLIDERS = [...document.querySelectorAll(".slider input")];

/** What the reader chose. Sets hold what differs from the page as it was made. */
const STATE = { epsilon: null, theme: "auto", at: null };
const SETS = ["engines", "sizes", "states", "systems", "legend"];

function readAddress() {
  const chosen = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const name of SETS) STATE[name] = new Set((chosen.get(name) || "").split("|").filter(Boolean).map(decoded));
  const theme = chosen.get("theme");
  STATE.theme = ["light", "dark"].includes(theme) ? theme : "auto";
  const epsilon = Number(chosen.get("value.epsilon"));
  STATE.epsilon = epsilon > 0 && epsilon < 1 ? epsilon : null;
  STATE.at = chosen.get("at") || (location.hash.includes("=") ? null : location.hash.slice(1)) || null;
}

/** Names in the address are separated by bars, and may contain bars themselves. */
const encoded = (name) => name.replaceAll("~", "~0").replaceAll("|", "~1");
const decoded = (name) => name.replaceAll("~1", "|").replaceAll("~0", "~");

function writeAddress() {
  const chosen = new URLSearchParams();
  for (const name of SETS) if (STATE[name].size > 0) chosen.set(name, [...STATE[name]].map(encoded).join("|"));
  if (STATE.epsilon !== null) chosen.set("value.epsilon", STATE.epsilon);
  if (STATE.theme !== "auto") chosen.set("theme", STATE.theme);
  if (STATE.at !== null) {
    if (chosen.size === 0) return history.replaceState(null, "", `#${STATE.at}`);
    chosen.set("at", STATE.at);
  }
  const text = chosen.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

function changed() {
  writeAddress();
  apply();
}

// --- what is shown

const isShown = (chip) => (chip.dataset.shown === "true") !== STATE[chip.dataset.set].has(chip.dataset.value);

function show(element, shown) {
  if (shown) element.removeAttribute("display"); else element.setAttribute("display", "none");
}

function apply() {
  applyTheme();
  document.querySelectorAll("[data-set]").forEach((chip) => chip.setAttribute("aria-pressed", String(isShown(chip))));
  GROUPS.forEach(applyTo);
  for (const section of document.querySelectorAll("section.figure")) {
    section.querySelector(".none").hidden = [...section.querySelectorAll(".group")].some((group) => !group.hidden);
  }
  const hiding = SETS.slice(0, 4).reduce((sum, set) => sum + STATE[set].size, 0);
  document.querySelector("#choice summary").textContent = `Filters and colours${hiding > 0 ? ` · ${hiding} hidden` : ""}`;
  document.getElementById("reset").hidden = STATE.epsilon === null && SETS.every((set) => STATE[set].size === 0);
  SLIDERS.forEach(applyEpsilon);
}

/** Hides the panels, variants and sizes of a group that filters and its legend leave out. */
function applyTo(group) {
  const entries = new Map();
  for (const chip of group.querySelectorAll(".legend [data-of]")) {
    const { engine } = VARIANTS[chip.dataset.of];
    chip.hidden = STATE.engines.has(engine);
    entries.set(chip.dataset.of, isShown(chip));
  }
  for (const mark of group.querySelectorAll("[data-v]")) {
    show(mark, !STATE.engines.has(VARIANTS[mark.dataset.v].engine) && entries.get(mark.dataset.v) !== false);
  }
  for (const mark of group.querySelectorAll("[data-b]")) show(mark, !STATE.sizes.has(mark.dataset.b));
  let panels = 0;
  for (const panel of group.querySelectorAll(".panel")) {
    const drawing = panel.querySelector(".drawing");
    const rows = [...drawing.querySelectorAll(".name")];
    const left = rows.filter((row) => !row.hasAttribute("display"));
    placeRows(drawing, rows, left);
    panel.hidden = ["sizes", "states", "systems"].some((set) => STATE[set].has(panel.dataset[set])) ||
      (rows.length > 0 && left.length === 0);
    panels += panel.hidden ? 0 : 1;
  }
  group.hidden = panels === 0;
}

/** Moves rows up, so that those that are hidden leave no gap. */
function placeRows(drawing, rows, left) {
  if (rows.length === 0) return;
  const height = HEIGHTS.get(drawing);
  const row = height / rows.length;
  drawing.setAttribute("height", height - row * (rows.length - left.length));
  left.forEach((element, place) => {
    const shift = (place - rows.indexOf(element)) * row;
    if (element.dataset.v === undefined) return;
    for (const mark of drawing.querySelectorAll(`[data-v="${element.dataset.v}"]`)) mark.setAttribute("transform", `translate(0 ${shift})`);
  });
}

// --- colours

const DARK = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (STATE.theme === "auto" ? DARK.matches : STATE.theme === "dark");

function applyTheme() {
  document.documentElement.dataset.theme = STATE.theme;
  document.getElementById("theme").textContent = isDark() ? "Light page" : "Dark page";
}

// --- the share ε that calls may add to the cost of their bytes

const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });

function shownBytes(bytes) {
  const units = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024], ["B", 1]];
  const [name, worth] = units.find(([, worth]) => bytes >= worth) || units[3];
  return `${digits(bytes / worth)} ${name}`;
}

/** Moves the recommended buffers: half the share needs twice the buffer. */
function applyEpsilon(input) {
  const epsilon = STATE.epsilon ?? Number(input.dataset.epsilon);
  const words = `${digits(epsilon * 100)} %`;
  input.previousElementSibling.textContent = `calls may add ε = ${words}`;
  input.setAttribute("aria-valuetext", words);
  if (document.activeElement !== input) input.value = Math.log10(epsilon);
  for (const mark of input.closest("section").querySelectorAll(".recommended")) {
    const { product, decades, share } = mark.dataset;
    const moved = Math.log10(Number(mark.dataset.epsilon) / epsilon) / decades;
    const after = Number(share) + moved;
    // What is beyond the axis is at its end; the words have the value.
    mark.setAttribute("x", `${100 * (Math.min(Math.max(after, 0), 1) - share)}%`);
    const note = mark.querySelector("text");
    note.textContent = `ε ${words}: ${shownBytes(product / epsilon)}`;
    note.setAttribute("class", after > 0.55 ? "note before" : "note");
    note.setAttribute("dx", after > 0.55 ? -4 : 4);
  }
}

// --- values under the pointer, and by the keyboard

/** A pointer within so many pixels of a mark means that mark. */
const NEAR = 20;
const TIP = document.getElementById("tip");
const hasBox = ({ width, height }) => width > 0 || height > 0;

function marksOf(drawing) {
  const marks = [...drawing.querySelectorAll("[data-t]")].map((mark) => ({ mark, box: mark.getBoundingClientRect() }));
  return marks.filter(({ box }) => hasBox(box));
}

function nearest(drawing, x, y) {
  let found = null;
  let least = NEAR;
  for (const { mark, box } of marksOf(drawing)) {
    const distance = Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
    // Of two marks that lie on each other the upper one is the later.
    if (distance <= least) [found, least] = [{ mark, box }, distance];
  }
  return found;
}

/** The words of a mark. Those that begin with a colon or a comma follow the name of the variant. */
function wordsOf(mark) {
  const words = mark.dataset.t;
  return /^[:,]/.test(words) ? VARIANTS[mark.closest("[data-v]").dataset.v].name + words : words;
}

function showTip(found) {
  document.querySelector(".pointed")?.classList.remove("pointed");
  TIP.hidden = found === null;
  if (found === null) return;
  found.mark.classList.add("pointed");
  TIP.textContent = wordsOf(found.mark);
  const { width, height } = TIP.getBoundingClientRect();
  const { left, right, top, bottom } = found.box;
  const x = Math.max(4, Math.min((left + right - width) / 2, document.documentElement.clientWidth - width - 4));
  TIP.style.left = `${x}px`;
  TIP.style.top = `${top - height - 8 < 0 ? bottom + 8 : top - height - 8}px`;
}

function watchMarks() {
  const point = (event) => {
    const drawing = event.target.closest?.(".drawing");
    showTip(drawing ? nearest(drawing, event.clientX, event.clientY) : null);
  };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  addEventListener("scroll", () => showTip(null), { passive: true });
  for (const drawing of DRAWINGS) {
    if (drawing.querySelector("[data-t]")) drawing.setAttribute("tabindex", "0");
    drawing.addEventListener("blur", () => showTip(null));
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") showTip(null);
      if (step === undefined) return;
      event.preventDefault();
      const marks = marksOf(drawing);
      const at = marks.findIndex(({ mark }) => mark.classList.contains("pointed"));
      const next = marks[at < 0 ? 0 : Math.min(Math.max(at + step, 0), marks.length - 1)];
      if (!next) return;
      showTip(next);
      say(wordsOf(next.mark));
    });
  }
}

// --- beginning

function watchControls() {
  document.addEventListener("click", (event) => {
    const chip = event.target.closest("[data-set]");
    if (!chip) return;
    const { set, value } = chip.dataset;
    if (!STATE[set].delete(value)) STATE[set].add(value);
    changed();
  });
  document.getElementById("theme").addEventListener("click", () => {
    STATE.theme = isDark() ? "light" : "dark";
    changed();
  });
  document.getElementById("reset").addEventListener("click", () => {
    SETS.forEach((name) => STATE[name].clear());
    STATE.epsilon = null;
    changed();
  });
  for (const input of SLIDERS) {
    input.addEventListener("input", () => {
      STATE.epsilon = Number((10 ** Number(input.value)).toPrecision(2));
      changed();
    });
  }
  DARK.addEventListener("change", applyTheme);
}

/** Links and filters are open where there is room for them, and folded on a phone. */
function foldWhereNarrow() {
  const narrow = matchMedia("(max-width: 40rem)");
  const fold = () => document.querySelectorAll(".fold").forEach((it) => { it.open = !narrow.matches; });
  narrow.addEventListener("change", fold);
  fold();
}

function followAddress() {
  if (location.hash.includes("=")) {
    readAddress();
    changed();
  } else if (location.hash) {
    // A link to a figure keeps the filters.
    STATE.at = location.hash.slice(1);
    writeAddress();
  }
}

readAddress();
apply();
foldWhereNarrow();
watchControls();
watchMarks();
watchTables();
addEventListener("hashchange", followAddress);
if (STATE.at) document.getElementById(STATE.at)?.scrollIntoView();
document.documentElement.dataset.ready = "true";
requestAnimationFrame(() => performance.mark("usable"));
