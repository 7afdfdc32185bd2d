// Converts the marks of the data to plotly's traces.

const RULES = { own: "solid", fit: "dot", thin: "solid" };

/** Everything that decides how a mark of a variant looks. */
function styleOf(variant, theme) {
  const style = variant === null ? null : DATA.styles[variant];
  if (!style) return { color: theme.neutral, symbol: "circle", dash: "solid", engine: "" };
  return {
    color: theme.dark ? style.dark : style.light,
    symbol: style.symbol,
    dash: style.dash,
    engine: style.engine,
  };
}

/** A text for plotly, which takes tags in texts for its own: names come from files that anybody may have written. */
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function transparent(color, strength) {
  const part = (at) => parseInt(color.slice(at, at + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},${strength})`;
}

/**
 * What a panel draws now, and how far it reaches. Where names of rows stand `inside` the picture, bars
 * and tiles leave the upper half of their row to them.
 */
function drawn(panel, isShown, theme, isLog, inside) {
  const out = { traces: [], shapes: [], notes: [], reach: { x: [], y: [] }, bands: [] };
  const place = {
    x: placesOf(panel.x, isShown),
    y: placesOf(panel.y, isShown),
  };
  const violins = new Map();
  const room = roomsOf(panel, isShown);
  for (const mark of panel.marks) {
    if (!isShown(mark)) continue;
    const style = styleOf(mark.variant, theme);
    const keep = sizeFilter(panel);
    if (mark.kind === "violin") {
      if (!keep(mark.at)) continue;
      const together = violins.get(mark.variant) || { style, name: mark.name, marks: [] };
      together.marks.push(mark);
      violins.set(mark.variant, together);
    } else {
      DRAW[mark.kind](mark, style, { out, place, keep, theme, isLog, panel, room, inside });
    }
  }
  for (const together of violins.values()) drawViolins(together, { out, place, panel, room });
  return out;
}

/** Moves what belongs to a violin to its share of the room, which those that are shown divide. */
function roomsOf(panel, isShown) {
  const violins = panel.marks.filter((mark) => mark.kind === "violin" && isShown(mark));
  const variants = [...new Set(violins.map((mark) => mark.variant))];
  if (panel.x.categories || violins.length === 0) {
    const half = violins.length > 0 ? violins[0].room / 2 : 0;
    return { middle: (at) => at, aside: (middle, share) => middle + half * share };
  }
  const room = violins[0].room;
  const each = room ** (1 / variants.length);
  return {
    middle: (at, variant) => {
      const index = variants.indexOf(variant);
      return index < 0 ? at : (at / Math.sqrt(room)) * each ** (index + 0.5);
    },
    aside: (middle, share) => middle * each ** (0.47 * share),
  };
}

/** Where the categories of an axis stand when those that are hidden leave no gap. */
function placesOf(axis, isShown) {
  if (!axis.categories) return { at: (value) => value, labels: null };
  const shown = axis.categories
    .map((category, index) => ({ ...category, index }))
    .filter((category) => isShown(category));
  const at = (value) => {
    const index = Math.round(value);
    const place = shown.findIndex((category) => category.index === index);
    return place < 0 ? null : place + (value - index);
  };
  return { at, labels: shown.map((category) => category.label) };
}

/** Whether a value on x is of a file size that is shown. */
function sizeFilter(panel) {
  if (!panel.x.file_sizes || STATE.sizes.size === 0) return () => true;
  const near = (value) =>
    DATA.file_bytes.reduce((best, size) =>
      Math.abs(Math.log(size / value)) < Math.abs(Math.log(best / value)) ? size : best);
  return (value) => !STATE.sizes.has(String(near(value)));
}

function reach(out, x, y) {
  if (x !== null && Number.isFinite(x)) out.reach.x.push(x);
  if (y !== null && Number.isFinite(y)) out.reach.y.push(y);
}

function drawViolins({ style, name, marks }, { out, place, panel, room }) {
  const outline = { x: [], y: [] };
  const medians = { x: [], y: [], text: [] };
  const runs = { x: [], y: [] };
  for (const { at, variant, outline: points, runs: single, median, text } of marks) {
    const place_x = place.x.at(at);
    if (place_x === null) continue;
    const middle = panel.x.categories ? place_x : room.middle(at, variant);
    const aside = (share) => room.aside(middle, share);
    const right = points.map(([value, share]) => [aside(share), value]);
    const left = points.map(([value, share]) => [aside(-share), value]).reverse();
    const all = points.length > 1 ? [...right, ...left, right[0]] : points.length === 1 ? [left[0], right[0]] : [];
    for (const [x, y] of all) {
      outline.x.push(x);
      outline.y.push(y);
      reach(out, x, y);
    }
    outline.x.push(null);
    outline.y.push(null);
    for (const run of single) {
      runs.x.push(middle);
      runs.y.push(run);
      reach(out, aside(1), run);
      reach(out, aside(-1), run);
    }
    medians.x.push(middle);
    medians.y.push(median);
    medians.text.push(plain(text));
  }
  out.traces.push({
    type: "scatter", mode: "lines", name, x: outline.x, y: outline.y, fill: "toself",
    fillcolor: transparent(style.color, 0.4), line: { color: style.color, width: 1 },
    hoverinfo: "skip",
  });
  if (runs.x.length > 0) {
    out.traces.push({
      type: "scatter", mode: "markers", name, ...runs, hoverinfo: "skip",
      marker: { symbol: style.symbol, size: 5, color: style.color, opacity: 0.5 },
    });
  }
  out.traces.push({
    type: "scatter", mode: "markers", name, ...medians, hoverinfo: "text",
    marker: { symbol: "line-ew-open", size: 9, color: style.color, line: { width: 2, color: style.color } },
  });
}

const DRAW = {
  line(mark, style, { out, place, keep, theme, panel, room }) {
    const points = mark.points.filter(([x]) => mark.stroke === "fit" || keep(x));
    const own = mark.stroke === "own" && !panel.x.categories;
    const x = points.map(([x]) => (own ? room.middle(x, mark.variant) : place.x.at(x)));
    const y = points.map(([, y]) => place.y.at(y));
    x.forEach((value, index) => reach(out, value, y[index]));
    const thin = mark.stroke !== "own";
    out.traces.push({
      type: "scatter", mode: "lines", name: mark.name, x, y, hoverinfo: "skip",
      line: {
        color: mark.variant === null ? transparent(theme.neutral, 0.5) : style.color,
        width: thin ? 1.2 : 1.8,
        dash: mark.stroke === "own" ? style.dash : RULES[mark.stroke],
      },
    });
  },

  dots(mark, style, { out, place, keep, theme, panel }) {
    const dots = mark.dots
      .map((dot) => ({ ...dot, px: place.x.at(dot.x), py: place.y.at(dot.y) }))
      .filter((dot) => dot.px !== null && dot.py !== null && keep(dot.x));
    const along = mark.along;
    for (const dot of dots) {
      reach(out, dot.px, dot.py);
      const [low, high] = [dot.low, dot.high];
      // A very wide interval must not compress the others.
      const value = along === "x" ? dot.x : dot.y;
      if (low !== null) out.bands.push([along, Math.max(low, value / 3)]);
      if (high !== null) out.bands.push([along, Math.min(high, value * 3)]);
    }
    const value = (dot) => (along === "x" ? dot.x : dot.y);
    const known = dots.some((dot) => dot.low !== null);
    const error = {
      type: "data", symmetric: false, visible: known, thickness: 1.6, width: 3, color: style.color,
      array: dots.map((dot) => (dot.high === null ? 0 : dot.high - value(dot))),
      arrayminus: dots.map((dot) => (dot.low === null ? 0 : value(dot) - dot.low)),
    };
    out.traces.push({
      type: "scatter", mode: "markers", name: mark.name,
      x: dots.map((dot) => dot.px), y: dots.map((dot) => dot.py),
      text: dots.map((dot) => plain(dot.text)), hoverinfo: "text",
      [along === "x" ? "error_x" : "error_y"]: error,
      marker: {
        symbol: style.symbol, size: 9, color: mark.hollow ? theme.ground : style.color,
        line: { color: style.color, width: 1.8 },
      },
    });
  },

  cloud(mark, style, { out, place, keep }) {
    const points = mark.points.filter(([x]) => keep(x));
    points.forEach(([x, y]) => reach(out, x, y));
    out.traces.push({
      type: "scatter", mode: "markers", name: mark.name,
      x: points.map(([x]) => place.x.at(x)), y: points.map(([, y]) => y),
      text: plain(mark.name), hovertemplate: "%{text}: %{y:.3~g} at %{x:.4~g}<extra></extra>",
      marker: { symbol: style.symbol, size: 5, color: style.color, opacity: 0.65 },
    });
  },

  bars(mark, style, { out, place, panel, inside }) {
    const bars = mark.bars
      .map(([row, length], index) => ({ row: place.y.at(row), length, text: mark.texts[index] }))
      .filter((bar) => bar.row !== null);
    for (const bar of bars) {
      out.sums = out.sums || new Map();
      const end = (out.sums.get(bar.row) || 0) + bar.length;
      out.sums.set(bar.row, end);
      reach(out, end, bar.row);
    }
    out.traces.push({
      type: "bar", orientation: "h", name: mark.name, width: inside ? 0.4 : 0.72,
      x: bars.map((bar) => bar.length), y: bars.map((bar) => bar.row + (inside ? 0.22 : 0)),
      hovertext: bars.map((bar) => plain(bar.text)), hoverinfo: "text",
      ...(mark.named ? namesOf(mark, bars, longestBar(panel), style.color) : { textposition: "none" }),
      marker: {
        color: transparent(style.color, mark.strength),
        line: { color: style.color, width: 0.6 },
      },
    });
  },

  heat(mark, style, { out, place, theme, isLog, panel, inside }) {
    let rows = mark.ys
      .map((y, index) => ({ y: place.y.at(y), cells: mark.rows[index], name: panel.y.categories?.[y]?.label }))
      .filter((row) => row.y !== null);
    const xEdges = edges(mark.xs.map((x) => place.x.at(x)), isLog.x);
    let yEdges = panel.y.categories
      ? [...rows.map((row) => row.y - 0.5), rows.length - 0.5]
      : edges(rows.map((row) => row.y), isLog.y);
    if (inside && panel.y.categories) {
      yEdges = [...rows.flatMap((row) => [row.y - 0.5, row.y]), rows.length - 0.5];
      rows = rows.flatMap((row) => [{ cells: row.cells.map(() => null) }, row]);
    }
    xEdges.forEach((x) => reach(out, x, null));
    yEdges.forEach((y) => reach(out, null, y));
    out.exact = true;
    // From four times the best on, the colour is the same.
    const value = (cell) => (cell === null ? null : mark.scale === "from_one" ? Math.min(Math.log2(cell) / 2, 1) : cell);
    out.traces.push({
      type: "heatmap", name: mark.name, x: xEdges, y: yEdges,
      z: rows.map((row) => row.cells.map(value)),
      text: rows.map((row) => row.cells.map((cell, index) => (cell === null
        ? "" : plain(`${row.name ? `${row.name}, ` : ""}${shown(panel.x.unit, mark.xs[index])}: ${digits(cell)} ${mark.label}`)))),
      hoverinfo: "text", showscale: false, hoverongaps: false,
      zmin: 0, zmax: 1, xgap: mark.scale === "from_one" ? 1 : 0, ygap: 2,
      colorscale: [[0, theme.pale], [1, theme.hot]],
    });
  },

  rule(mark, style, { out, theme }) {
    const across = mark.cuts === "x";
    if (mark.text) reach(out, across ? mark.at : null, across ? null : mark.at);
    const color = mark.variant === null ? transparent(theme.neutral, mark.text ? 0.9 : 0.35) : style.color;
    const dash = mark.stroke === "own" ? style.dash : RULES[mark.stroke];
    out.shapes.push({ cuts: mark.cuts, from: mark.at, to: mark.at, line: { color, width: mark.text ? 1.5 : 1, dash } });
    if (mark.text) out.notes.push({ cuts: mark.cuts, at: mark.at, text: mark.text, color });
  },

  recommended(mark, style, { out, theme }) {
    const at = mark.call_ns / (epsilon() * mark.byte_ns);
    const text = `ε ${digits(epsilon() * 100)} %: ${shown("bytes", at)}`;
    if (mark.low_share !== null && mark.high_share !== null) {
      const [from, to] = [at * mark.low_share, at * mark.high_share];
      out.shapes.push({ cuts: "x", from, to, fillcolor: transparent(theme.neutral, 0.12), line: { width: 0 } });
    }
    out.shapes.push({ cuts: "x", from: at, to: at, line: { color: theme.hot, width: 2 } });
    out.notes.push({ cuts: "x", at, text, color: theme.hot });
    reach(out, at, null);
  },

  band(mark, style, { out, theme, panel, keep }) {
    if (mark.cuts === "x" && panel.x.file_sizes && !keep(Math.sqrt(mark.from * mark.to))) return;
    const fill = mark.warning ? theme.warning : transparent(theme.neutral, panel.x.file_sizes ? 0.05 : 0.16);
    out.shapes.push({ cuts: mark.cuts, from: mark.from, to: mark.to, fillcolor: fill, line: { width: 0 } });
    if (mark.text) {
      out.traces.push({
        type: "scatter", mode: "markers", name: mark.name, atTop: true,
        x: [(mark.from + mark.to) / 2], y: [null], text: [plain(mark.text)], hoverinfo: "text",
        marker: { symbol: "triangle-down", size: 7, color: theme.warningInk },
      });
    }
  },
};

/** The name of a mark in its bars where they are long, and behind the others, where there is room then. */
function namesOf(mark, bars, longest, color) {
  return {
    text: bars.map(() => plain(mark.name)),
    textposition: bars.map((bar) => (bar.length > 0.45 * longest ? "inside" : "outside")),
    textfont: { size: 11 }, insidetextfont: { size: 11, color: inkOn(color) },
    textangle: 0, constraintext: "none", insidetextanchor: "start", cliponaxis: false,
  };
}

const longestBar = (panel) => panel.marks.flatMap((mark) => mark.bars || []).reduce((most, [, length]) => Math.max(most, length), 0);

/** Black or white, whichever can be read better on a ground of this colour (WCAG 2.2, relative luminance). */
function inkOn(ground) {
  const channel = (at) => {
    const share = parseInt(ground.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? "#ffffff" : "#000000";
}

/** The borders of tiles whose middles are given. */
function edges(middles, isLog) {
  const to = isLog ? Math.log : (value) => value;
  const from = isLog ? Math.exp : (value) => value;
  const at = middles.map(to);
  if (at.length === 1) return [from(at[0] - 0.5), from(at[0] + 0.5)];
  const inner = at.slice(1).map((value, index) => (value + at[index]) / 2);
  const first = at[0] - (inner[0] - at[0]);
  const last = at[at.length - 1] + (at[at.length - 1] - inner[inner.length - 1]);
  return [first, ...inner, last].map(from);
}
