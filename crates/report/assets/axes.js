// Numbers as text, and the positions of ticks.

const SUBSCRIPTS = { count: "", ratio: " ×", seconds: " s" };

/** A number with at most three digits that mean something, or more where it has to be told from another. */
function digits(value, most = 3) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000 && Math.abs(value) < 1e6) return Math.round(value).toLocaleString("en");
  const text = Number(value.toPrecision(most));
  return Math.abs(text) >= 1e6 || Math.abs(text) < 1e-4
    ? text.toExponential()
    : text.toLocaleString("en", { maximumSignificantDigits: most });
}

/** A value in its largest unit that keeps it over one. */
function inUnits(value, units, most) {
  const size = Math.abs(value);
  const [name, worth] = units.find(([, worth]) => size >= worth * 0.9995) || units[units.length - 1];
  return `${digits(value / worth, most)} ${name}`;
}

const TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const BYTES = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024], ["B", 1]];

/** The length of a file: exact where a unit would hide a byte. */
function shownSize(bytes) {
  return bytes % 1024 !== 0 && bytes > 1024 && bytes < 2 ** 20 ? `${bytes.toLocaleString("en")} B` : shown("bytes", bytes);
}

function shown(unit, value, most) {
  if (unit === "ns") return value === 0 ? "0" : inUnits(value, TIMES, most);
  if (unit === "bytes") return value === 0 ? "0" : inUnits(value, BYTES, most);
  return digits(value, most);
}

/** Ticks between two values, at most `most` of them: [value, label]. */
function ticks(axis, isLog, low, high, most) {
  // A zoomed range can be too small to divide into ticks.
  if (!(high - low > Math.abs(high) * 1e-12) || !Number.isFinite(high) || (isLog && low <= 0)) return [];
  const inSight = axis.file_sizes ? DATA.file_bytes.filter((size) => size >= low && size <= high) : [];
  const own = inSight.filter((size, index) => index === 0 || size > inSight[index - 1] * 1.3);
  const values = isLog && own.length >= 2 && own.length <= most ? own : isLog ? logTicks(axis.unit, low, high, most) : evenTicks(axis.unit, low, high, most);
  // No two ticks may have the same label.
  const labels = (digits) => values.map((value) => shown(axis.unit, value, digits));
  const enough = [3, 4, 5, 6].find((digits) => new Set(labels(digits)).size === values.length) || 6;
  return labels(enough).map((label, index) => [values[index], label]);
}

function logTicks(unit, low, high, most) {
  if (unit === "bytes") {
    for (const step of [1, 2, 4, 5, 10]) {
      const values = [];
      const first = Math.ceil(Math.log2(low) / step - 1e-9) * step;
      for (let at = first; 2 ** at <= high * 1.000001; at += step) values.push(2 ** at);
      if (values.length <= most) return values;
    }
  }
  const decades = Math.log10(high / low);
  for (const mantissas of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const values = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      for (const m of mantissas) {
        const value = Number((m * 10 ** e).toPrecision(6));
        if (value >= low * 0.999999 && value <= high * 1.000001) values.push(value);
      }
    }
    // Without a decade in the range, linear steps are used.
    const few = decades < 1 ? 3 : 2;
    if (values.length < few) return evenTicks(unit, low, high, most);
    if (values.length <= most) return values;
  }
  const step = Math.ceil(decades / most);
  const values = [];
  for (let e = Math.ceil(Math.log10(low)); 10 ** e <= high; e += step) values.push(10 ** e);
  return values;
}

function evenTicks(unit, low, high, most) {
  const span = (high - low) / Math.max(most - 1, 1);
  const base = unit === "bytes" ? 2 : 10;
  const power = base ** Math.floor(Math.log(span) / Math.log(base));
  const steps = unit === "bytes" ? [1, 2] : [1, 2, 5, 10];
  let even = (steps.find((step) => step * power >= span) || base) * power;
  // A scale needs at least two ticks.
  while (even > (high - low) / 2 && Math.floor(high / even) - Math.ceil(low / even) < 1) even /= 2;
  // Counts are integers.
  const step = unit === "count" ? Math.max(1, even) : even;
  const values = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) {
    values.push(Number(at.toPrecision(12)));
  }
  return values;
}

/** The label of an axis, with what has to be known of its scale. */
function axisTitle(axis, isLog) {
  const unit = SUBSCRIPTS[axis.unit] && axis.unit === "seconds" ? " (s)" : "";
  return `${axis.label}${unit}${isLog ? " · log scale" : ""}`;
}
