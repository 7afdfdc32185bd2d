// The page: what is shown is kept in the address, and figures are drawn when they come into sight.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** What the reader chose. Sets hold what differs from the page as it was made. */
const STATE = {
  engines: new Set(), sizes: new Set(), states: new Set(), systems: new Set(),
  linear: new Set(), legend: new Set(), values: new Map(), theme: "auto",
};
const SETS = ["engines", "sizes", "states", "systems", "linear", "legend"];

function readAddress() {
  const chosen = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const name of SETS) STATE[name] = new Set((chosen.get(name) || "").split("|").filter(Boolean));
  const theme = chosen.get("theme");
  STATE.theme = ["light", "dark"].includes(theme) ? theme : "auto";
  STATE.values = new Map();
  for (const [name, value] of chosen) {
    if (name.startsWith("value.")) STATE.values.set(name.slice(6), Number(value));
  }
  return chosen.get("at") || (location.hash.includes("=") ? null : location.hash.slice(1));
}

function writeAddress() {
  const chosen = new URLSearchParams();
  for (const name of SETS) if (STATE[name].size > 0) chosen.set(name, [...STATE[name]].join("|"));
  for (const [name, value] of STATE.values) chosen.set(`value.${name}`, value);
  if (STATE.theme !== "auto") chosen.set("theme", STATE.theme);
  const text = chosen.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

function toggle(set, item) {
  if (!STATE[set].delete(item)) STATE[set].add(item);
  changed();
}

function changed() {
  writeAddress();
  applyTheme();
  showControls();
  GROUPS.forEach((group) => { group.stale = true; });
  drawVisible();
}

// --- theme

const PRINT = matchMedia("print");
const DARK = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  if (PRINT.matches || printing) return false;
  return STATE.theme === "auto" ? DARK.matches : STATE.theme === "dark";
}

let printing = false;

function applyTheme() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    dark: isDark(), ground: of("ground"), neutral: of("ink"), soft: of("soft"), grid: of("grid"),
    pale: of("pale"), hot: of("hot"), cool: of("cool"), warning: of("warning"), warningInk: of("warning-ink"),
  };
}

// --- filters

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
  document.querySelectorAll("section.figure").forEach(showTools);
  GROUPS.forEach(showLegend);
  const [value, label] = key;
  if (value !== undefined && label) {
    const again = [...document.querySelectorAll("[data-value]")].find((it) =>
      it.dataset.value === value && it.closest("[aria-label]")?.getAttribute("aria-label") === label);
    if (again && document.activeElement !== again) again.focus({ preventScroll: true });
  }
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
    // Taken out and put in again it would lose the focus while it is moved.
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
  return value > 0 && value < 1 ? value : 0.01;
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
  fit: '<path d="M1 6h24" stroke="currentColor" stroke-width="1.6" stroke-dasharray="2 2"/>',
};

function keyOf({ look, text }) {
  const key = document.createElement("span");
  key.innerHTML = `<svg width="26" height="12" viewBox="0 0 26 12" aria-hidden="true">${LOOKS[look]}</svg>`;
  key.append(text);
  return key;
}

// --- groups of panels

/** Below this many pixels names stand inside the pictures. */
const PHONE = 560;

const GROUPS = [...document.querySelectorAll(".group")].map((element, place) => {
  const figure = DATA.figures.find((figure) => figure.id === element.dataset.figure);
  const index = Number(element.dataset.group);
  const legend = document.createElement("div");
  legend.className = "legend";
  element.querySelector("h3").after(legend);
  return {
    element, figure, legend, place, key: `${figure.id}.${index}`, data: figure.groups[index],
    plot: element.querySelector(".plot"), stale: true, near: false,
  };
});

function markShown(group, mark) {
  if (mark.variant === null || mark.variant === undefined) return true;
  const style = DATA.styles[mark.variant];
  if (style && STATE.engines.has(style.engine)) return false;
  const flipped = STATE.legend.has(`${group.key}.${mark.variant}`);
  return Boolean(mark.hidden) === flipped;
}

function panelShown(panel) {
  const { file_bytes: size, state, file_system: system } = panel.facets;
  return !(size !== null && STATE.sizes.has(String(size))) &&
    !(state !== null && STATE.states.has(state)) &&
    !(system !== null && STATE.systems.has(system));
}

/** The legend of a group: a click hides a variant there, or shows it. */
function showLegend(group) {
  const listed = new Map();
  for (const mark of group.data.panels.flatMap((panel) => panel.marks)) {
    if (mark.legend && !listed.has(mark.variant)) listed.set(mark.variant, mark);
  }
  const made = [...listed.values()]
    .filter((mark) => !STATE.engines.has(DATA.styles[mark.variant]?.engine))
    .map((mark) => {
      const key = `${group.key}.${mark.variant}`;
      const control = button(mark.name, markShown(group, mark), () => toggle("legend", key), swatch(mark.variant, true));
      control.dataset.value = key;
      return control;
    });
  group.legend.setAttribute("role", "group");
  group.legend.setAttribute("aria-label", `Legend of ${group.data.title}`);
  group.legend.replaceChildren(...made);
}

function drawVisible() {
  for (const group of GROUPS) if (group.near && group.stale) draw(group);
}

function drawAll() {
  GROUPS.forEach((group) => { if (group.stale) draw(group); });
}

/** Draws a group anew. */
function draw(group) {
  group.stale = false;
  const panels = group.data.panels.filter(panelShown);
  const colors = theme();
  const isShown = (mark) => markShown(group, mark);
  const isLog = (panel) => ({
    x: panel.x.log && !STATE.linear.has(`${group.figure.id}.x`),
    y: panel.y.log && !STATE.linear.has(`${group.figure.id}.y`),
  });
  group.element.hidden = false;
  const width = Math.floor(group.plot.getBoundingClientRect().width) || 600;
  const inside = width < PHONE && group.data.height === "rows";
  const content = (panel) => ({ panel, logs: isLog(panel), ...drawn(panel, isShown, colors, isLog(panel), inside) });
  const contents = panels.map(content).filter((content) => content.traces.length > 0);
  group.element.hidden = contents.length === 0;
  noteEmpty(group);
  if (contents.length === 0) return;
  const plan = layoutOf(group, contents, width, colors);
  group.plot.style.height = `${plan.layout.height}px`;
  const config = {
    displaylogo: false, responsive: false, plotlyServerURL: "", showSendToCloud: false, showEditInChartStudio: false,
    modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    toImageButtonOptions: { format: "svg", filename: `haulage-${group.key}` },
    displayModeBar: width > 560 ? "hover" : false, scrollZoom: false,
  };
  Plotly.react(group.plot, plan.traces, plan.layout, config);
  group.plan = plan;
  if (!group.watched) {
    group.watched = true;
    group.plot.on("plotly_relayout", () => refreshTicks(group));
  }
  group.element.dataset.drawn = "true";
}

function noteEmpty(group) {
  const section = group.element.closest("section");
  const none = section.querySelector(".none");
  none.hidden = [...section.querySelectorAll(".group")].some((element) => !element.hidden);
}

/** Where panels stand, how large they are and what their axes say. */
function layoutOf(group, contents, width, colors) {
  const phone = width < PHONE;
  const rows = group.data.height === "rows";
  const labels = rows ? placesOf(contents[0].panel.y, (it) => markShown(group, it)).labels : null;
  const longest = labels ? Math.max(0, ...labels.map((label) => label.length)) : 0;
  const inside = Boolean(labels) && phone;
  const left = labels ? (inside ? 8 : Math.min(longest * 6.7 + 14, width * 0.4)) : 66;
  const gap = rows ? 22 : 70;
  const least = rows ? (inside ? 260 : 165) : group.data.height === "strip" ? 290 : 360;
  const right = 14;
  const fit = Math.floor((width - left - right + gap) / (least + gap));
  const columns = Math.max(1, Math.min(contents.length, fit, balanced(contents.length, fit)));
  const lines = Math.ceil(contents.length / columns);
  const top = contents.some((content) => content.panel.title) ? 22 : 8;
  const names = contents[0].panel.x.categories ? placesOf(contents[0].panel.x, (it) => markShown(group, it)).labels : null;
  const slanted = Boolean(names) && (width - 80) / names.length < 110;
  const bottom = slanted ? 96 : phone ? 58 : 44;
  const tall = rows ? Math.max(1, labels.length) * (inside ? 36 : 21) + 6
    : group.data.height === "strip" ? 190 : phone ? 340 : 420;
  const height = lines * (top + tall + bottom) + 4;
  const layout = {
    width, height, margin: { l: 0, r: 0, t: 0, b: 0 }, showlegend: false, barmode: "stack",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: phone ? false : "zoom",
    font: { family: "system-ui, sans-serif", size: 12, color: colors.soft },
    hoverlabel: { bgcolor: colors.ground, bordercolor: colors.soft, font: { color: colors.neutral, size: 12 }, align: "left" },
    shapes: [], annotations: [],
  };
  const traces = [];
  const axes = [];
  const cell = (width - left - right - gap * (columns - 1)) / columns;
  const common = commonRange(group, contents);
  contents.forEach((content, index) => {
    const n = index + 1;
    const [xName, yName] = [`x${n === 1 ? "" : n}`, `y${n === 1 ? "" : n}`];
    const column = index % columns;
    const line = Math.floor(index / columns);
    const x0 = left + column * (cell + gap);
    const y0 = line * (top + tall + bottom) + top;
    const box = { x0, y0, x1: x0 + cell, y1: y0 + tall };
    const domainX = [box.x0 / width, box.x1 / width];
    const domainY = [1 - box.y1 / height, 1 - box.y0 / height];
    const range = { x: common || rangeOf(content, "x"), y: labels ? [labels.length - 0.5, -0.5] : rangeOf(content, "y") };
    for (const [side, name, domain, anchor, px] of [["x", xName, domainX, yName, cell], ["y", yName, domainY, xName, tall]]) {
      const axis = content.panel[side];
      const isLog = content.logs[side];
      const made = {
        domain, anchor, type: isLog ? "log" : "linear", range: isLog ? range[side].map(Math.log10) : range[side],
        zeroline: false, gridcolor: colors.grid, linecolor: colors.grid, showline: side === "x", ticks: "", automargin: false,
        tickfont: { size: 11.5 }, tickangle: 0,
      };
      const most = side === "x" ? Math.max(3, Math.floor(px / (axis.unit === "ratio" ? 32 : 54))) : Math.max(3, Math.floor(px / 38));
      const names = placesOf(axis, (it) => markShown(group, it)).labels;
      if (names) {
        made.tickmode = "array";
        made.tickvals = names.map((_, place) => place);
        const dropped = side === "y" && (column > 0 || inside);
        made.ticktext = side === "y" && dropped ? names.map(() => "") : side === "x" ? names.map((name) => shortened(name, slanted ? 90 : px / names.length)) : names;
        made.fixedrange = side === "y";
        if (side === "x") made.range = [-0.6, names.length - 0.4];
        if (side === "x") made.tickangle = slanted ? -45 : 0;
      } else {
        setTicks(made, axis, isLog, range[side], most);
        axes.push({ key: side === "x" ? `xaxis${n === 1 ? "" : n}` : `yaxis${n === 1 ? "" : n}`, axis, isLog, most });
      }
      layout[`${side}axis${n === 1 ? "" : n}`] = made;
    }
    for (const trace of content.traces) {
      const { atTop, ...plain } = trace;
      if (atTop) plain.y = [content.logs.y ? range.y[1] * 0.985 : range.y[1]];
      traces.push({ ...plain, xaxis: xName, yaxis: yName, cliponaxis: !atTop });
    }
    addShapes(layout, content, xName, yName, colors);
    addWords(layout, content, { range, box, width, height, top, inside, labels, column, line, lines, contents, columns, index, rows, tall, left, right, phone, xName, yName }, colors);
  });
  return { traces, layout, axes };
}

/** Columns so that the last line is not almost empty. */
function balanced(count, fit) {
  if (fit < 1) return 1;
  return Math.ceil(count / Math.ceil(count / fit));
}

/** Panels whose ratios are compared have one range in common. */
function commonRange(group, contents) {
  const first = contents[0].panel.x;
  const alike = contents.length > 1 && contents.every((it) => it.panel.x.unit === "ratio" && it.panel.x.label === first.label);
  if (!alike) return null;
  const all = contents.map((content) => rangeOf(content, "x"));
  return [Math.min(...all.map((range) => range[0])), Math.max(...all.map((range) => range[1]))];
}

function rangeOf(content, side) {
  const axis = content.panel[side];
  const isLog = content.logs[side];
  const values = [...content.reach[side]];
  for (const [along, value] of content.bands) if (along === side) values.push(value);
  if (axis.reach !== null) values.push(axis.reach);
  const usable = isLog ? values.filter((value) => value > 0) : values;
  let low = usable.reduce((a, b) => Math.min(a, b), Infinity);
  let high = usable.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!Number.isFinite(low)) return isLog ? [0.1, 10] : [0, 1];
  if (content.exact) return low === high ? [low * 0.9, high * 1.1] : [low, high];
  if (isLog) {
    const room = Math.max((high / low) ** 0.05, 1.02);
    return [low / room, high * room];
  }
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  // Bars begin at zero.
  return [axis.reach === 0 && low >= 0 ? 0 : low - room, high + room];
}

function setTicks(made, axis, isLog, range, most) {
  const marks = ticks(axis, isLog, Math.min(...range), Math.max(...range), most);
  made.tickmode = "array";
  made.tickvals = marks.map(([value]) => value);
  made.ticktext = marks.map(([, label]) => label);
}

/** After a zoom, ticks for what is now in sight. */
function refreshTicks(group) {
  if (group.refreshing) return;
  const change = {};
  for (const { key, axis, isLog, most } of group.plan.axes) {
    const now = group.plot._fullLayout?.[key];
    if (!now) continue;
    const range = isLog ? now.range.map((value) => 10 ** value) : now.range;
    const marks = ticks(axis, isLog, Math.min(...range), Math.max(...range), most);
    change[`${key}.tickvals`] = marks.map(([value]) => value);
    change[`${key}.ticktext`] = marks.map(([, label]) => label);
  }
  group.refreshing = true;
  Plotly.relayout(group.plot, change).finally(() => { group.refreshing = false; });
}

function addShapes(layout, content, xName, yName) {
  for (const { cuts, from, to, ...look } of content.shapes) {
    const across = cuts === "x";
    const shape = {
      type: from === to ? "line" : "rect", layer: "below", ...look,
      xref: across ? xName : `${xName} domain`, yref: across ? `${yName} domain` : yName,
    };
    [shape.x0, shape.x1] = across ? [from, to] : [0, 1];
    [shape.y0, shape.y1] = across ? [0, 1] : [from, to];
    layout.shapes.push(shape);
  }
}

/** Titles of panels, axes and lines, and labels of rows where there is no room beside them. */
function addWords(layout, content, at, colors) {
  const { box, width, height } = at;
  const words = (text, px, py, more) => layout.annotations.push({
    text, x: px / width, y: 1 - py / height, xref: "paper", yref: "paper", showarrow: false, ...more,
  });
  const soft = { font: { size: 12, color: colors.soft } };
  if (content.panel.title) {
    words(`<b>${content.panel.title}</b>`, box.x0, box.y0 - 20, { xanchor: "left", yanchor: "top", font: { size: 12.5, color: colors.neutral } });
  }
  const last = at.index + at.columns >= at.contents.length;
  const named = !content.panel.x.categories && last;
  const oneTitle = at.rows && at.columns > 1;
  if (named && (!oneTitle || at.index === at.contents.length - 1)) {
    const middle = oneTitle ? (at.left + width - at.right) / 2 : (box.x0 + box.x1) / 2;
    words(fitted(axisTitle(content.panel.x, content.logs.x), oneTitle ? width - at.left : box.x1 - box.x0), middle, box.y1 + 22, { xanchor: "center", yanchor: "top", ...soft });
  }
  if (!content.panel.y.categories && at.column === 0) {
    words(fitted(axisTitle(content.panel.y, content.logs.y), box.y1 - box.y0), 0, (box.y0 + box.y1) / 2, { xanchor: "left", yanchor: "middle", textangle: -90, ...soft });
  }
  if (at.inside) {
    at.labels.forEach((label, row) => {
      const py = box.y0 + ((row + 0.5) / at.labels.length) * (box.y1 - box.y0) - 20;
      words(label, box.x0, py, { xanchor: "left", yanchor: "top", font: { size: 11, color: colors.soft }, bgcolor: transparent(colors.ground, 0.7), borderpad: 0, height: 13 });
    });
  }
  for (const note of content.notes) {
    const across = note.cuts === "x";
    const scale = (value) => ((across ? content.logs.x : content.logs.y) ? Math.log10(value) : value);
    // On the side where there is room.
    const [low, high] = at.range[note.cuts].map(scale);
    const far = (scale(note.at) - low) / (high - low) > 0.55;
    layout.annotations.push({
      text: note.text, showarrow: false, font: { size: 11, color: note.color },
      x: across ? scale(note.at) : 1, y: across ? (at.rows ? 0 : 1) : scale(note.at),
      xref: across ? at.xName : `${at.xName} domain`, yref: across ? `${at.yName} domain` : at.yName,
      xanchor: across && !far ? "left" : "right", yanchor: across && !at.rows ? "top" : "bottom",
    });
  }
}

/** A title in as many lines as it takes. */
function fitted(text, px) {
  const most = Math.max(12, Math.floor(px / 6.2));
  if (text.length <= most) return text;
  const cut = text.lastIndexOf(" ", most);
  return cut < 0 ? text : `${text.slice(0, cut)}<br>${text.slice(cut + 1)}`;
}

function shortened(name, px) {
  const most = Math.max(10, Math.floor(px / 5));
  return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
}

// --- beginning

function begin() {
  const at = readAddress();
  applyTheme();
  showControls();
  watchTables();
  const watcher = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      const group = GROUPS.find((group) => group.element === target);
      group.near = isIntersecting;
    }
    drawVisible();
    if (performance.getEntriesByName("usable").length === 0) performance.mark("usable");
  }, { rootMargin: "300px" });
  GROUPS.forEach((group) => watcher.observe(group.element));
  DARK.addEventListener("change", changed);
  PRINT.addEventListener("change", (event) => { printing = event.matches; redraw(); });
  addEventListener("beforeprint", () => { printing = true; redraw(); });
  addEventListener("afterprint", () => { printing = false; redraw(); });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    GROUPS.forEach((group) => { group.stale = true; });
    drawVisible();
  });
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return;
    readAddress();
    changed();
  });
  if (at) document.getElementById(at)?.scrollIntoView();
  document.documentElement.dataset.ready = "true";
}

/** On paper everything is drawn, in light colours; tables are those that the reader has opened. */
function redraw() {
  applyTheme();
  GROUPS.forEach((group) => { group.stale = true; });
  if (printing) drawAll(); else drawVisible();
}

begin();
