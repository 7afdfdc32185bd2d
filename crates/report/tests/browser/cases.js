// The cases, as a table: each gets a fresh page, and throws if something is wrong.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { becomes, open, usable } from "./browser.js";

function equal(found, expected, what) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }
}

function holds(truth, what) {
  if (!truth) throw new Error(what);
}

/** Whether a figure shows a mark of a variant. Chromium takes SVG that is not displayed for visible. */
const shows = (page, figure, variant) => page.evaluate(([id, name]) => {
  const variants = JSON.parse(document.getElementById("variants").textContent);
  const number = variants.findIndex(([of]) => of === name);
  return [...document.querySelectorAll(`#${id} .mark[data-v="${number}"]`)].some((mark) => getComputedStyle(mark).display !== "none");
}, [figure, variant]);

const isIn = (page, figure, variant, expected, what) => same(() => shows(page, figure, variant), expected, what);

const same = (ask, expected, what) =>
  becomes(ask, (found) => JSON.stringify(found) === JSON.stringify(expected), `${what}, expected ${JSON.stringify(expected)}`);

const chip = (page, label, value) => page.locator(`#filters [aria-label="${label}"] button[data-value="${value}"]`);

/** Text that sticks out of what holds it, and labels that lie on each other. */
const collisions = (page) => page.evaluate(() => {
  const found = [];
  for (const group of document.querySelectorAll(".group")) {
    const home = group.getBoundingClientRect();
    const texts = [...group.querySelectorAll(".drawing text:not(.note, .named)")]
      .map((text) => ({ text: text.textContent, box: text.getBoundingClientRect(), slants: text.matches(".slanted") }))
      .filter(({ text, box }) => text.trim() && box.width > 0 && box.height > 0);
    for (const { text, box } of texts) {
      const out = box.left < home.left - 2 || box.right > home.right + 2 || box.top < home.top - 2 || box.bottom > home.bottom + 2;
      if (out) found.push(`clipped: ${text} in ${group.querySelector("h3").textContent}`);
    }
    texts.forEach((one, index) => texts.slice(index + 1).forEach((other) => {
      const wide = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const high = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      // Slanted labels do not overlap, though their bounding boxes do.
      if (one.slants && other.slants && Math.abs(one.box.right - other.box.right) > 20) return;
      if (wide > 2 && high > 4) found.push(`overlap: ${one.text} | ${other.text} in ${group.querySelector("h3").textContent}`);
    }));
  }
  return found;
});

/** What lies beyond the screen, and what hides a part of its own width. Only tables may, and have to say so. */
const beyond = (page) => page.evaluate(() => {
  const found = [];
  for (const element of document.querySelectorAll("body *:not(svg, svg *, .skip, #said)")) {
    const box = element.getBoundingClientRect();
    // A closed element has a position, but is not visible.
    if (box.width === 0 || box.height === 0 || !element.checkVisibility()) continue;
    const name = `${element.localName}.${element.className} ${element.textContent.trim().slice(0, 40)}`;
    const table = element.closest("details.table .scroll");
    if ((table === null || table === element) && (box.left < -1 || box.right > innerWidth + 1)) found.push(`beyond the screen: ${name}`);
    if (element.scrollWidth <= element.clientWidth + 1 || getComputedStyle(element).overflowX === "visible") continue;
    const says = table === element && element.closest("details").querySelector(".wide").checkVisibility();
    if (!says) found.push(`hides a part of its width: ${name}`);
  }
  return found;
});

/** Ticks of one axis that say the same. */
const twins = (page) => page.$$eval(".drawing", (drawings) => drawings.flatMap((drawing) =>
  [".at-x", ".at-y:not(.name)"].flatMap((axis) => {
    const ticks = [...drawing.querySelectorAll(axis)].filter((it) => it.getBoundingClientRect().width > 0).map((it) => it.textContent);
    return new Set(ticks).size < ticks.length ? [`${drawing.getAttribute("aria-label")}: ${ticks}`] : [];
  })));

async function fits(browser, address, width) {
  const { page, close } = await open(browser, address, { width, height: width < 600 ? 844 : 900 });
  equal(await page.evaluate(() => document.documentElement.scrollWidth), width, "width of the page");
  equal(await collisions(page), [], "clipped or overlapping text");
  equal(await twins(page), [], "ticks that say the same");
  await same(() => beyond(page), [], "too wide");
  // A closed element has to fit when it is opened too.
  await page.evaluate(() => document.querySelectorAll("details").forEach((it) => { it.open = true; }));
  await same(() => beyond(page), [], "too wide when all is unfolded");
  equal(await page.evaluate(() => document.documentElement.scrollWidth), width, "width of the page when all is unfolded");
  await close();
}

export const CASES = {};

CASES["no error, no request, and every figure draws"] = async (browser, { address, figures }) => {
  const { page, problems, close } = await open(browser, address);
  const ids = await page.$$eval("section.figure", (sections) => sections.map((section) => section.id).sort());
  equal(ids, [...figures].sort(), "figures");
  const empty = await page.$$eval(".group", (groups) =>
    groups.filter((group) => ![...group.querySelectorAll(".mark *")].some((it) => it.getBoundingClientRect().height > 0))
      .map((group) => group.querySelector("h3").textContent));
  equal(empty, [], "groups that drew nothing");
  equal(problems, [], "errors and requests");
  await close();
};

CASES["the first screen has question, answer, badge, machine and the answering figure"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  for (const selector of ["h1", ".verdict", ".badge", ".machine", "section.figure h2"]) {
    const box = await page.locator(selector).first().boundingBox();
    holds(box && box.y + box.height < 900, `${selector} is below the first screen`);
  }
  const plot = await page.locator(".drawing").first().boundingBox();
  holds(plot.y < 600, `the first picture begins at ${plot.y}`);
  await close();
};

CASES["a filter of engines hides an engine everywhere, and the address restores it"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  await isIn(page, "ratio", "sendfile", true, "sendfile is there");
  await chip(page, "Engines", "sendfile").click();
  await isIn(page, "ratio", "sendfile", false, "sendfile is hidden");
  equal(await chip(page, "Engines", "sendfile").getAttribute("aria-pressed"), "false", "the button says so");
  await isIn(page, "size", "sendfile", false, "sendfile is hidden in another figure");
  const url = page.url();
  await close();
  const again = await open(browser, url);
  await isIn(again.page, "ratio", "sendfile", false, "sendfile is hidden from the beginning");
  await again.page.getByText("Show everything again").click();
  await isIn(again.page, "ratio", "sendfile", true, "sendfile is back");
  await same(async () => again.page.url().includes("sendfile"), false, "the address is as before");
  await again.close();
};

CASES["filters of sizes and states take panels away"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  const has = async () => (await page.$$eval("#ratio .head", (texts) => texts.filter((text) => text.getBoundingClientRect().width > 0).map((text) => text.textContent))).includes("4 MiB");
  await same(has, true, "4 MiB is there");
  await chip(page, "File sizes", String(4 << 20)).click();
  await same(has, false, "4 MiB is away");
  const cold = page.locator("#ratio .group").filter({ hasText: /^cold/ }).first();
  await same(() => cold.isVisible(), true, "cold is there");
  await chip(page, "Page cache", "cold").click();
  await same(() => cold.isVisible(), false, "cold is away");
  await chip(page, "Page cache", "cold").click();
  await same(() => cold.isVisible(), true, "cold is back");
  await close();
};

CASES["rows that are hidden leave no gap"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  const drawing = page.locator("#ratio .drawing").first();
  const high = async () => (await drawing.boundingBox()).height;
  const lowest = () => drawing.locator(".name").last().evaluate((row) => row.getBoundingClientRect().bottom - row.closest("svg").getBoundingClientRect().top);
  const [before, rows] = [await high(), await drawing.locator(".name").count()];
  await chip(page, "Engines", "sendfile").click();
  await becomes(high, (now) => Math.abs(now - before * (1 - 1 / rows)) < 1, "the height without a row");
  const now = await high();
  holds((await lowest()) <= now + 1, "the last row is below its panel");
  await close();
};

CASES["a click in a legend hides a variant in that group alone"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  const button = page.locator('#size .legend button[data-value="size.0.copy_file_range"]');
  const number = await button.getAttribute("data-of");
  const inGroup = () => page.locator("#size .group").first().evaluate((group, of) =>
    [...group.querySelectorAll(`.mark[data-v="${of}"]`)].some((mark) => getComputedStyle(mark).display !== "none"), number);
  equal(await inGroup(), true, "it is drawn");
  await button.click();
  await same(inGroup, false, "it is hidden");
  await isIn(page, "ratio", "copy_file_range", true, "elsewhere it is still there");
  await close();
};

CASES["the slider of ε moves the buffer that is recommended"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  const said = () => page.locator("#per-call .recommended text").allTextContents();
  const place = () => page.locator("#per-call .recommended .strong").first().evaluate((it) => it.getBoundingClientRect().left);
  const all = (start) => (texts) => texts.length > 0 && texts.every((text) => text.startsWith(start));
  const before = await becomes(said, all("ε 1 %"), "at first");
  const left = await place();
  const input = page.locator("#per-call .slider input");
  await input.focus();
  for (let press = 0; press < 6; press++) await page.keyboard.press("ArrowRight");
  const after = await becomes(said, all("ε 2 %"), "moved");
  holds(before[0].split(": ")[1] !== after[0].split(": ")[1], "the buffer is another");
  holds((await place()) < left - 5, "a larger share needs a smaller buffer");
  holds(page.url().includes("value.epsilon=0.02"), page.url());
  await page.reload();
  await usable(page);
  await becomes(said, all("ε 2 %"), "after a reload");
  await close();
};

CASES["the pointer and the keyboard tell values"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  const tip = page.locator("#tip");
  const dot = page.locator("#ratio .drawing .dot").first();
  await dot.evaluate((it) => it.scrollIntoView({ block: "center" }));
  const box = await dot.boundingBox();
  // Near is enough, as a symbol is small. Another movement comes if scrolling hid the words again.
  let nudge = 0;
  const hovered = async () => {
    nudge = 1 - nudge;
    await page.mouse.move(box.x + box.width / 2 + 5 + nudge, box.y + box.height / 2);
    return (await tip.isVisible()) ? tip.textContent() : "";
  };
  await becomes(hovered, (text) => /95 %/.test(text), "what hovering says");
  await page.mouse.move(2, 2);
  await same(() => tip.isVisible(), false, "away from marks");
  const drawing = page.locator("#ratio .drawing").first();
  await drawing.focus();
  const texts = await drawing.locator("[data-t]").evaluateAll((all) => all.map((it) => it.dataset.t));
  for (const text of texts.slice(0, 2)) {
    await page.keyboard.press("ArrowRight");
    await becomes(() => tip.textContent(), (told) => told.endsWith(text) && !/^[:,]/.test(told), `by the keyboard: ${text}`);
    equal(await page.locator("#said").textContent(), await tip.textContent(), "said to screen readers");
  }
  await page.keyboard.press("Escape");
  await same(() => tip.isVisible(), false, "after Escape");
  await close();
};

CASES["everything can be read without scripts"] = async (browser, { address, figures }) => {
  const context = await browser.newContext({ javaScriptEnabled: false, offline: true });
  const page = await context.newPage();
  await page.goto(address);
  for (const id of figures) {
    equal(await page.locator(`#${id} .drawing`).first().isVisible(), true, `${id} is drawn`);
    holds(await page.locator(`#${id} .reading`).isVisible(), `${id} is explained`);
  }
  equal(await page.locator("#choice").isVisible(), false, "controls that would do nothing");
  await page.locator("details.table summary").first().click();
  equal(await page.locator("details.table table").first().isVisible(), true, "a table opens");
  await context.close();
};

CASES["tables sort, and are copied as CSV"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const table = page.locator("#ratio details.table").first();
  await table.locator("summary").click();
  const head = table.locator("th", { hasText: /^ratio/ });
  const column = () => table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => Number(row.cells[3].dataset.v || row.cells[3].textContent)));
  const up = [...await column()].sort((a, b) => a - b);
  await head.locator("button").click();
  await same(column, up, "ascending");
  await head.locator("button").click();
  await same(column, [...up].reverse(), "descending");
  equal(await head.getAttribute("aria-sort"), "descending", "said to screen readers");
  await table.locator("button.copy").click();
  await same(() => page.locator("#said").textContent(), "Copied as CSV.", "said");
  const csv = await page.evaluate(() => navigator.clipboard.readText());
  equal(csv.trim().split("\n").length, up.length + 1, "lines of CSV");
  holds(csv.includes('"splice:1M,pipe=1M"'), "a comma is quoted");
  await close();
};

CASES["the keyboard reaches filters and works them"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  await chip(page, "Engines", "splice").focus();
  await page.keyboard.press("Enter");
  await same(() => chip(page, "Engines", "splice").getAttribute("aria-pressed"), "false", "pressed");
  await same(() => page.evaluate(() => document.activeElement.dataset.value), "splice", "the focus stays");
  const nameless = await page.$$eval("button, [role=img], [role=group], input", (all) =>
    all.filter((it) => !(it.getAttribute("aria-label") || it.textContent.trim() || it.closest("label"))).length);
  equal(nameless, 0, "controls without a name");
  await close();
};

CASES["nothing in the page but what it is made of"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  const found = await page.evaluate(() => ({
    scripts: document.querySelectorAll("script").length,
    frames: document.querySelectorAll("iframe, object, embed, img, base, form, meta[http-equiv=refresh]").length,
    handlers: [...document.querySelectorAll("*")].filter((it) => [...it.attributes].some(({ name }) => name.startsWith("on"))).length,
    links: [...document.querySelectorAll("a[href], a")].filter((it) => it.protocol === "javascript:" || it.getAttribute("xlink:href")).length,
    obeyed: typeof window.pwned,
  }));
  equal(found, { scripts: 2, frames: 0, handlers: 0, links: 0, obeyed: "undefined" }, "what names could have made");
  await close();
};

CASES["a link to a figure keeps the choice"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address);
  await chip(page, "Engines", "sendfile").click();
  await page.locator('nav a[href="#drift"]').click();
  await same(async () => new URLSearchParams(page.url().split("#")[1]).get("at"), "drift", "the figure in the address");
  await page.reload();
  await usable(page);
  await same(() => chip(page, "Engines", "sendfile").getAttribute("aria-pressed"), "false", "the choice");
  await same(() => page.locator("#drift h2").evaluate((it) => it.getBoundingClientRect().top < innerHeight), true, "the figure is in sight");
  await close();
};

CASES["dark follows the system and the switch"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address, { scheme: "dark" });
  const ground = () => page.evaluate(() => getComputedStyle(document.querySelector("section")).backgroundColor);
  await same(ground, "rgb(20, 24, 29)", "dark ground");
  await page.getByRole("button", { name: "Light page" }).click();
  await same(ground, "rgb(255, 255, 255)", "light ground");
  await page.reload();
  await usable(page);
  await same(ground, "rgb(255, 255, 255)", "after a reload");
  await close();
};

CASES["paper gets all figures and no controls"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address, { scheme: "dark" });
  await page.emulateMedia({ media: "print" });
  await same(() => page.locator("#filters").isVisible(), false, "filters are on paper");
  await same(() => page.evaluate(() => getComputedStyle(document.querySelector("section")).backgroundColor), "rgb(255, 255, 255)", "ground");
  await close();
};

CASES["nothing is clipped or overlaps at 1280 pixels"] = (browser, { address }) => fits(browser, address, 1280);
CASES["nothing is clipped or overlaps at 390 pixels"] = (browser, { address }) => fits(browser, address, 390);

CASES["links and filters are folded on a phone, and can be used there"] = async (browser, { address }) => {
  const { page, close } = await open(browser, address, { width: 390, height: 844 });
  const first = page.locator("#filters button").first();
  await same(() => first.isVisible(), false, "filters are folded");
  await page.locator("#choice summary").click();
  await first.click();
  await same(() => page.locator("#choice summary").textContent(), "Filters and colours · 1 hidden", "what is folded says so");
  await page.locator("nav summary").click();
  await page.locator("nav a").last().click();
  await same(() => page.locator("#environment h2").evaluate((it) => it.getBoundingClientRect().top < innerHeight), true, "the link leads there");
  await close();
  const wide = await open(browser, address);
  await same(() => wide.page.locator("#filters button").first().isVisible(), true, "filters lie open where there is room");
  await same(() => wide.page.locator("#choice summary").isVisible(), false, "and need no title");
  await wide.close();
};

CASES["it can be used soon"] = async (browser, { address, usable_ms_max }) => {
  // Other load can only make a page slower, so the fastest of several counts.
  const times = [];
  for (let time = 0; time < 3; time++) {
    const { page, close } = await open(browser, address, { fresh: true });
    times.push(Math.round(await usable(page)));
    await close();
  }
  console.log(`        the first screen was drawn ${times.join(", ")} ms after navigation began`);
  holds(Math.min(...times) <= usable_ms_max, `the first screen took ${times.join(", ")} ms, ${usable_ms_max} are allowed`);
};

/** Cases for particular pages, which have to be asked for. */
export const PARTICULAR = {};

PARTICULAR["what is shown is text"] = async (browser, { address, names }) => {
  const { page, close } = await open(browser, address);
  const shown = await page.$$eval("#ratio .name", (texts) => texts.map((text) => text.textContent));
  // A name that is long is cut.
  const starts = (name) => shown.some((text) => text.endsWith("…") ? name.startsWith(text.slice(0, -1)) : text === name);
  for (const name of names) holds(starts(name), `${name} is not among ${JSON.stringify(shown)}`);
  const entry = () => page.locator("#size .legend").first().locator("button", { hasText: names[2] });
  await entry().click();
  await same(() => entry().getAttribute("aria-pressed"), "false", "hidden");
  await page.reload();
  await usable(page);
  await same(() => entry().getAttribute("aria-pressed"), "false", "the address keeps any name");
  await close();
};

/** What could get into a page if a name were ever taken for a part of it, and how it is seen to have done so. */
const INJECTED = [
  ["<script>window.byScript = true</script>", () => window.byScript],
  ['<img src="data:," onerror="window.byHandler = true">', () => window.byHandler],
  ['<a id="trap" href="javascript:void (window.byLink = true)">trap</a>', () => window.byLink],
  ["<style>h1 { color: rgb(1, 2, 3) }</style>", () => getComputedStyle(document.querySelector("h1")).color === "rgb(1, 2, 3)"],
];

PARTICULAR["no script runs but the page's own"] = async (browser, { page: file, scratch }) => {
  const html = readFileSync(file, "utf8").replace("</header>", () => `${INJECTED.map(([injected]) => injected).join("")}</header>`);
  const made = (name, html) => {
    writeFileSync(`${scratch}/${name}`, html);
    return open(browser, pathToFileURL(`${scratch}/${name}`).href);
  };
  const works = async (page) => {
    await page.locator("#trap").click();
    return Promise.all(INJECTED.map(async ([, seen]) => Boolean(await page.evaluate(seen))));
  };
  // Without the policy all of it works: so it is the policy that stops it.
  const bare = await made("bare.html", html.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, ""));
  await becomes(() => works(bare.page), (each) => each.every(Boolean), "without a policy");
  await bare.close();
  const held = await made("held.html", html);
  equal(await works(held.page), INJECTED.map(() => false), "with the policy");
  const complaints = () => held.problems.filter((words) => words.includes("Content Security Policy")).length;
  await becomes(complaints, (count) => count >= INJECTED.length, "a complaint of each");
  equal(await works(held.page), INJECTED.map(() => false), "with the policy, after the complaints");
  await held.close();
};
