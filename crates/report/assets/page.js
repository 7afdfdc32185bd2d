// The page: its state is kept in the address, and figures are drawn when they scroll into view.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** What the reader chose. Sets hold what differs from the page as it was made. */
const STATE = {
  engines: new Set(), sizes: new Set(), states: new Set(), systems: new Set(),
  linear: new Set(), legend: new Set(), values: new Map(), theme: "auto", at: null,
};
const SETS = ["engines", "sizes", "states", "systems", "linear", "legend"];

function readAddress() {
  const chosen = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const name of SETS) STATE[name] = new Set((chosen.get(name) || "").split("|").filter(Boolean).map(decoded));
  const theme = chosen.get("theme");
  STATE.theme = ["light", "dark"].includes(theme) ? theme : "auto";
  STATE.values = new Map();
  for (const [name, value] of chosen) {
    if (name.startsWith("value.")) STATE.values.set(name.slice(6), Number(value));
  }
  STATE.at = chosen.get("at") || (location.hash.includes("=") ? null : location.hash.slice(1)) || null;
}

/** Names in the address stand between bars, and may hold bars themselves. */
const encoded = (name) => name.replaceAll("~", "~0").replaceAll("|", "~1");
const decoded = (name) => name.replaceAll("~1", "|").replaceAll("~0", "~");

function writeAddress() {
  const chosen = new URLSearchParams();
  for (const name of SETS) if (STATE[name].size > 0) chosen.set(name, [...STATE[name]].map(encoded).join("|"));
  for (const [name, value] of STATE.values) chosen.set(`value.${name}`, value);
  if (STATE.theme !== "auto") chosen.set("theme", STATE.theme);
  if (STATE.at !== null) {
    if (chosen.size === 0) return history.replaceState(null, "", `#${STATE.at}`);
    chosen.set("at", STATE.at);
  }
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

const onPaper = () => PRINT.matches || printing;

function isDark() {
  if (onPaper()) return false;
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

// --- groups of panels

/** Below this many pixels names stand inside the pictures. */
const PHONE = 560;

/** What fits between the margins of A4 and of letter paper, in pixels. */
const PAPER = 680;

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

// An entry of the legend is initially off if all of its marks are hidden.
for (const panel of GROUPS.flatMap((group) => group.data.panels)) {
  for (const category of [...(panel.x.categories || []), ...(panel.y.categories || [])]) {
    const own = panel.marks.filter((mark) => mark.variant && mark.variant === category.variant);
    category.hidden = own.length > 0 && own.every((mark) => mark.hidden);
  }
}

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

/** What filters have hidden is never in sight: only drawing it tells whether there is something again. */
function drawVisible() {
  for (const group of GROUPS) if (group.stale && (group.near || group.element.hidden)) draw(group);
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
  // Before printing the layout is that of the window, whose width is not that of the paper.
  const width = onPaper() ? PAPER : Math.floor(group.plot.getBoundingClientRect().width) || 600;
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
  const tall = rows ? Math.max(1, labels.length) * (inside ? 36 : 21) + 6
    : group.data.height === "strip" ? 190 : phone ? 340 : 420;
  // A title of two lines needs room beside the ticks.
  const titles = contents.map(({ panel, logs }) => fitted(axisTitle(panel.y, logs.y), tall));
  const beside = titles.some((title) => title.includes("<br>")) ? 74 : 66;
  const left = labels ? (inside ? 8 : Math.min(longest * 6.7 + 14, width * 0.4)) : beside;
  const gap = !rows ? 70 : contents[0].panel.x.unit === "ratio" ? 22 : 38;
  const least = rows ? (inside ? 260 : 165) : group.data.height === "strip" ? 290 : 360;
  const right = 14;
  const fit = Math.floor((width - left - right + gap) / (least + gap));
  const columns = Math.max(1, Math.min(contents.length, fit, balanced(contents.length, fit)));
  const lines = Math.ceil(contents.length / columns);
  const cell = (width - left - right - gap * (columns - 1)) / columns;
  const heads = contents.map(({ panel }) => fitted(panel.title, cell * 0.8));
  const top = heads.some((head) => head.includes("<br>")) ? 38 : heads.some(Boolean) ? 22 : 8;
  const names = contents[0].panel.x.categories ? placesOf(contents[0].panel.x, (it) => markShown(group, it)).labels : null;
  const each = names ? (width - 80) / columns / names.length : 0;
  const slanted = Boolean(names) && each < 60;
  const under = (name) => (slanted ? plain(shortened(name, 80)) : broken(name, each));
  const deepest = (names || []).reduce((most, name) => Math.max(most, under(name).split("<br>").length), 1);
  const bottom = slanted ? 96 : (phone ? 58 : 44) + 14 * (deepest - 1);
  const height = lines * (top + tall + bottom) + 4;
  const layout = {
    width, height, margin: { l: 0, r: 0, t: 0, b: 0 }, showlegend: false, barmode: "stack",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: phone ? false : "zoom",
    font: { family: "system-ui, sans-serif", size: 12, color: colors.soft },
    hoverlabel: { bgcolor: colors.ground, bordercolor: colors.soft, font: { color: colors.neutral, size: 12 }, align: "left" },
    // Plotly derives a grey box from the transparent ground.
    modebar: { bgcolor: transparent(colors.ground, 0.8), color: colors.soft, activecolor: colors.neutral },
    shapes: [], annotations: [],
  };
  const traces = [];
  const axes = [];
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
      // Ratios that differ little have more digits.
      const each = axis.unit !== "ratio" ? 54 : range[side][1] / range[side][0] > 3 ? 32 : 42;
      const most = Math.max(3, Math.floor(px / (side === "x" ? each : 38)));
      const names = placesOf(axis, (it) => markShown(group, it)).labels;
      if (names) {
        made.tickmode = "array";
        made.tickvals = names.map((_, place) => place);
        const dropped = side === "y" && (column > 0 || inside);
        made.ticktext = names.map((name) => (side === "x" ? under(name) : dropped ? "" : plain(name)));
        made.fixedrange = side === "y";
        made.ticklabelstandoff = 4;
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
    addWords(layout, content, { head: heads[index], range, box, width, height, top, inside, labels, column, line, lines, contents, columns, index, rows, tall, left, right, phone, xName, yName }, colors);
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
  if (at.head) {
    const lines = at.head.includes("<br>") ? 2 : 1;
    words(`<b>${at.head}</b>`, box.x0, box.y0 - 4 - 16 * lines, { xanchor: "left", yanchor: "top", align: "left", font: { size: 12.5, color: colors.neutral } });
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
      words(plain(shortened(label, 0.8 * (box.x1 - box.x0))), box.x0, py, { xanchor: "left", yanchor: "top", font: { size: 11, color: colors.soft }, bgcolor: transparent(colors.ground, 0.7), borderpad: 0, height: 13 });
    });
  }
  for (const note of content.notes) {
    const across = note.cuts === "x";
    const scale = (value) => ((across ? content.logs.x : content.logs.y) ? Math.log10(value) : value);
    // On the side that has room.
    const [low, high] = at.range[note.cuts].map(scale);
    const far = (scale(note.at) - low) / (high - low) > 0.55;
    layout.annotations.push({
      text: plain(note.text), showarrow: false, font: { size: 11, color: note.color },
      x: across ? scale(note.at) : 1, y: across ? (at.rows ? 0 : 1) : scale(note.at),
      xref: across ? at.xName : `${at.xName} domain`, yref: across ? `${at.yName} domain` : at.yName,
      xanchor: across && !far ? "left" : "right", yanchor: across && !at.rows ? "top" : "bottom",
    });
  }
}

/** A title in as many lines as it takes. */
function fitted(text, px) {
  const most = Math.max(12, Math.floor(px / 6.2));
  const cut = text.length <= most ? -1 : text.lastIndexOf(" ", most);
  return cut < 0 ? plain(text) : `${plain(text.slice(0, cut))}<br>${plain(text.slice(cut + 1))}`;
}

/** A name in up to three lines, which end behind signs that join its parts. */
function broken(name, px) {
  const most = Math.max(8, Math.floor(px / 7.4));
  const lines = [""];
  for (const part of name.split(/(?<=[,:= ])/)) {
    if (lines.at(-1) && (lines.at(-1) + part).length > most) lines.push("");
    lines.push(lines.pop() + part);
  }
  const kept = lines.length > 3 ? [...lines.slice(0, 2), `${lines[2]}…`] : lines;
  return kept.map((line) => plain(shortened(line.trim(), px))).join("<br>");
}

function shortened(name, px) {
  const most = Math.max(10, Math.floor(px / 5));
  return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
}

// --- beginning

function begin() {
  readAddress();
  applyTheme();
  showControls();
  foldWhereNarrow();
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
    if (location.hash.includes("=")) {
      readAddress();
      changed();
    } else if (location.hash) {
      // A link to a figure keeps the filters.
      STATE.at = location.hash.slice(1);
      writeAddress();
    }
  });
  const at = STATE.at;
  if (at) document.getElementById(at)?.scrollIntoView();
  document.documentElement.dataset.ready = "true";
}

/** On paper everything is drawn, in light colours; tables are those that the reader has opened. */
function redraw() {
  applyTheme();
  GROUPS.forEach((group) => { group.stale = true; });
  if (onPaper()) drawAll(); else drawVisible();
}

begin();
