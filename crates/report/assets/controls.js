// The controls: filters, legends, scales, the slider of ε, and the keys of looks.

const SYMBOLS = {
  circle: "M6 1a5 5 0 1 0 .01 0z", square: "M1.5 1.5h9v9h-9z", diamond: "M6 0l5.5 6L6 12 .5 6z",
  "triangle-up": "M6 1l5.5 10H.5z", "triangle-down": "M6 11L.5 1h11z", pentagon: "M6 .5l5.5 4-2 7h-7l-2-7z",
  star: "M6 0l1.6 4H12L8.6 6.8 9.8 11.5 6 8.8 2.2 11.5 3.4 6.8 0 4h4.4z", cross: "M4 1h4v3h3v4H8v3H4V8H1V4h3z",
  hexagon: "M3 .8h6l3 5.2-3 5.2H3L0 6z", x: "M2.5 0L6 3.5 9.5 0 12 2.5 8.5 6 12 9.5 9.5 12 6 8.5 2.5 12 0 9.5 3.5 6 0 2.5z",
  "triangle-right": "M1 .5L11 6 1 11.5z",
};
const DASHES = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "9 3", longdashdot: "9 2 2 2" };

function swatch(variant, withLine) {
  const style = styleOf(variant, theme());
  const line = withLine
    ? `<path d="M0 6h26" stroke="${style.color}" stroke-width="2" stroke-dasharray="${DASHES[style.dash]}" fill="none"/>` : "";
  const width = withLine ? 26 : 12;
  return `<svg width="${width}" height="12" viewBox="0 0 ${width} 12" aria-hidden="true">${line}` +
    `<path transform="translate(${withLine ? 9 : 0} ${withLine ? 2 : 0}) scale(${withLine ? 0.66 : 1})" ` +
    `d="${SYMBOLS[style.symbol] || SYMBOLS.circle}" fill="${style.color}"/></svg>`;
}

function button(label, isOn, onClick, picture = "") {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "chip";
  made.innerHTML = picture;
  made.append(label);
  made.setAttribute("aria-pressed", String(isOn));
  made.addEventListener("click", onClick);
  return made;
}

function choices(title, set, items) {
  if (items.length < 2) return null;
  const box = document.createElement("div");
  box.className = "choices";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", title);
  const head = document.createElement("span");
  head.textContent = title;
  box.append(head);
  for (const { value, label, picture } of items) {
    const made = button(label, !STATE[set].has(value), () => toggle(set, value), picture);
    made.dataset.value = value;
    box.append(made);
  }
  return box;
}

function enginesInUse() {
  const engines = new Map();
  for (const [variant, style] of Object.entries(DATA.styles)) {
    if (!engines.has(style.engine)) engines.set(style.engine, variant);
  }
  return [...engines].map(([engine, variant]) => ({ value: engine, label: engine, picture: swatch(variant) }));
}

/** Rebuilds the controls, and leaves the focus where it was. */
function showControls() {
  const focus = document.activeElement;
  const key = focus && focus.dataset ? [focus.dataset.value, focus.closest("[aria-label]")?.getAttribute("aria-label")] : [];
  const box = document.getElementById("filters");
  const plain = (list) => list.map((item) => ({ value: String(item), label: String(item) }));
  const sizes = DATA.file_bytes.map((size) => ({ value: String(size), label: shownSize(size) }));
  const parts = [
    choices("Engines", "engines", enginesInUse()), choices("File sizes", "sizes", sizes),
    choices("Page cache", "states", plain(DATA.states)), choices("File systems", "systems", plain(DATA.file_systems)),
    themeChoice(), resetButton(),
  ];
  box.replaceChildren(...parts.filter(Boolean));
  showChoice();
  document.querySelectorAll("section.figure").forEach(showTools);
  GROUPS.forEach(showLegend);
  const [value, label] = key;
  if (value !== undefined && label) {
    const again = [...document.querySelectorAll("[data-value]")].find((it) =>
      it.dataset.value === value && it.closest("[aria-label]")?.getAttribute("aria-label") === label);
    if (again && document.activeElement !== again) again.focus({ preventScroll: true });
  }
}

/** Where the filters are folded their title says how many of them hide something. */
function showChoice() {
  const choice = document.getElementById("choice");
  const hiding = ["engines", "sizes", "states", "systems"].reduce((sum, set) => sum + STATE[set].size, 0);
  choice.querySelector("summary").textContent = `Filters and colours${hiding > 0 ? ` · ${hiding} hidden` : ""}`;
  choice.hidden = false;
}

/** Links and filters lie open where there is room for them, and are folded on a phone. */
function foldWhereNarrow() {
  const narrow = matchMedia("(max-width: 40rem)");
  const fold = () => document.querySelectorAll(".fold").forEach((it) => { it.open = !narrow.matches; });
  narrow.addEventListener("change", fold);
  fold();
}

function themeChoice() {
  const box = document.createElement("div");
  box.className = "choices";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Colours");
  const made = button(isDark() ? "Light page" : "Dark page", false, () => {
    STATE.theme = isDark() ? "light" : "dark";
    changed();
  });
  made.dataset.value = "theme";
  made.removeAttribute("aria-pressed");
  box.append(made);
  return box;
}

function resetButton() {
  const touched = SETS.some((name) => STATE[name].size > 0) || STATE.values.size > 0;
  if (!touched) return null;
  const made = button("Show everything again", false, () => {
    SETS.forEach((name) => STATE[name].clear());
    STATE.values.clear();
    changed();
  });
  made.removeAttribute("aria-pressed");
  made.classList.add("reset");
  return made;
}

/** Switches between logarithmic and linear axes, where a figure has logarithmic ones. */
function showTools(section) {
  const figure = DATA.figures.find((figure) => figure.id === section.id);
  const axes = new Map();
  for (const panel of figure.groups.flatMap((group) => group.panels)) {
    for (const side of ["x", "y"]) if (panel[side].log && !axes.has(side)) axes.set(side, panel[side]);
  }
  const made = [...axes].map(([side, axis]) => {
    const key = `${figure.id}.${side}`;
    const isLog = !STATE.linear.has(key);
    const name = axis.unit === "ratio" ? "ratio" : axis.label;
    const control = button(`${name}: ${isLog ? "log" : "linear"}`, isLog, () => toggle("linear", key));
    control.dataset.value = key;
    control.setAttribute("aria-label", `${name}: logarithmic scale`);
    control.title = "Switch between a logarithmic and a linear scale";
    return control;
  });
  if (figure.groups.some((group) => group.panels.some((panel) => panel.marks.some((mark) => mark.kind === "recommended")))) {
    // A replaced slider would lose the focus while it is moved.
    const there = section.querySelector(".slider");
    if (there) slider(there);
    else section.querySelector(".bar").append(slider(null));
  }
  section.querySelector(".tools").replaceChildren(...made);
  section.querySelector(".keys").replaceChildren(...figure.keys.map(keyOf));
}

/** The share that calls may add to what their bytes cost. */
function epsilon() {
  const value = STATE.values.get("epsilon");
  return value > 0 && value < 1 ? value : DATA.epsilon;
}

/** The slider of ε, from 0.1 to 20 % by factors; the one that is there stays, so that it can be dragged. */
function slider(there) {
  const label = there || document.createElement("label");
  if (!there) {
    label.className = "slider";
    label.innerHTML = '<span></span> <input type="range" min="-3" max="-0.7" step="0.05">';
    const input = label.querySelector("input");
    input.addEventListener("input", () => {
      STATE.values.set("epsilon", Number((10 ** Number(input.value)).toPrecision(2)));
      changed();
    });
  }
  label.querySelector("span").textContent = `calls may add ε = ${digits(epsilon() * 100)} %`;
  const input = label.querySelector("input");
  input.setAttribute("aria-label", "ε: the share that calls may add to what their bytes cost");
  input.setAttribute("aria-valuetext", `${digits(epsilon() * 100)} percent`);
  if (document.activeElement !== input) input.value = Math.log10(epsilon());
  return label;
}

const LOOKS = {
  full: '<circle cx="13" cy="6" r="4.5" fill="currentColor"/>',
  hollow: '<circle cx="13" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.6"/>',
  strong: '<path d="M3 1h20v10H3z" fill="currentColor"/>',
  medium: '<path d="M3 1h20v10H3z" fill="currentColor" fill-opacity=".55" stroke="currentColor" stroke-width=".6"/>',
  pale: '<path d="M3 1h20v10H3z" fill="currentColor" fill-opacity=".18" stroke="currentColor" stroke-width=".6"/>',
  band: '<path d="M3 0h20v12H3z" fill="currentColor" fill-opacity=".2"/>',
  warning: '<path d="M3 0h20v12H3z" fill="var(--warning)"/><path d="M10 0h6l-3 5z" fill="var(--warning-ink)"/>',
  rule: '<path d="M13 0v12" stroke="currentColor" stroke-opacity=".5"/>',
  line: '<path d="M1 6h24" stroke="currentColor" stroke-width="1.6" stroke-opacity=".7"/>',
  tiles: '<path d="M1 0h6v12H1z" fill="var(--pale)"/><path d="M7 0h6v12H7z" fill="var(--hot)" fill-opacity=".35"/>' +
    '<path d="M13 0h6v12h-6z" fill="var(--hot)" fill-opacity=".65"/><path d="M19 0h6v12h-6z" fill="var(--hot)"/>',
  fit: '<path d="M1 6h24" stroke="currentColor" stroke-width="1.6" stroke-dasharray="2 2"/>',
};

function keyOf({ look, text }) {
  const key = document.createElement("span");
  key.innerHTML = `<svg width="26" height="12" viewBox="0 0 26 12" aria-hidden="true">${LOOKS[look]}</svg>`;
  key.append(text);
  return key;
}
