// Opens a page in Debian's chromium, waits for what the cases expect, and collects its errors.

import { mkdirSync, writeFileSync } from "node:fs";
import { chromium } from "playwright-core";

/** A machine may be slow, and busy with other tests: only what never comes takes this long. */
const LIMIT_MS = 90_000;

/** Looks go by the clock: a browser that hangs may draw no frame, and waits by default from one to the next. */
const LOOK = { polling: 100 };

const FLAGS = [
  // Chromium has no sandbox as root, and small machines and containers have little shared memory.
  "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** Pages that are open, with what was noted in them. */
const OPENED = new Set();

/** The outcome of `work`, if it comes within `ms`: much of what is asked of a browser has no limit of its own. */
export async function within(ms, work, what) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`${what}: nothing after ${ms / 1000} s`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The machine's fonts, and ours for those that have none. DejaVu Sans is wider than most: what fits then fits. */
function fontsIn(scratch, fonts) {
  const file = `${scratch}/fonts.conf`;
  const first = (family) => `<alias binding="same"><family>${family}</family><prefer><family>DejaVu Sans</family></prefer></alias>`;
  writeFileSync(file, `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd"><fontconfig>
<dir>/usr/share/fonts</dir><dir>/usr/local/share/fonts</dir><dir>${fonts}</dir><cachedir>${scratch}/fonts</cachedir>
${["system-ui", "sans-serif"].map(first).join("\n")}
</fontconfig>\n`);
  return file;
}

/** Starts chromium, with nothing of the user's: neither a home directory nor settings have to be there. */
export async function start({ chromium: executablePath, scratch, fonts }) {
  mkdirSync(scratch, { recursive: true });
  const env = {
    ...process.env, HOME: scratch, XDG_CONFIG_HOME: scratch, XDG_CACHE_HOME: scratch,
    FONTCONFIG_FILE: fontsIn(scratch, fonts), LC_ALL: "C.UTF-8",
  };
  return chromium.launch({ executablePath, headless: true, args: FLAGS, env, timeout: LIMIT_MS });
}

/** Closed pages without problems, by their look: the next navigation needs no new process of chromium. */
const SPARE = new Map();

/** A page whose errors and requests are kept. Only the file itself may be asked for. */
export async function open(browser, address, { width = 1280, height = 900, scheme = "light", fresh = false } = {}) {
  const look = `${width} ${height} ${scheme}`;
  const opened = (!fresh && SPARE.get(look)) || (await anew(browser, { viewport: { width, height }, colorScheme: scheme }));
  SPARE.delete(look);
  const { page, problems } = opened;
  OPENED.add(opened);
  const close = async () => {
    OPENED.delete(opened);
    if (fresh || problems.length > 0 || SPARE.has(look)) return page.context().close();
    await page.emulateMedia({ media: null, colorScheme: scheme });
    await page.goto("about:blank");
    SPARE.set(look, opened);
  };
  await page.goto(address);
  await usable(page);
  return { page, problems, close };
}

/** A page in a context of its own, with what is noted in it. */
async function anew(browser, options) {
  const context = await browser.newContext({ ...options, offline: true });
  context.setDefaultTimeout(LIMIT_MS);
  const page = await context.newPage();
  const problems = [];
  const heard = [];
  page.on("console", (message) => {
    const words = `console ${message.type()}: ${message.text()}`;
    (message.type() === "error" ? problems : heard).push(words);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.stack || error.message}`));
  page.on("crash", () => problems.push("the page crashed"));
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(file|data|blob):/.test(url)) problems.push(`request: ${url}`);
  });
  return { page, problems, heard };
}

/** Waits until what is in the first screen is drawn; gives the time since navigation began. */
export async function usable(page) {
  await page.waitForFunction(() => performance.getEntriesByName("usable").length > 0, null, LOOK);
  return page.evaluate(() => performance.getEntriesByName("usable")[0].startTime);
}

/** What is known of pages that a failed case left open, and a picture of each; closes them. */
export async function autopsy(prefix) {
  let count = 0;
  for (const opened of [...OPENED]) {
    count += 1;
    OPENED.delete(opened);
    for (const words of [...opened.problems, ...opened.heard]) console.log(`        ${words}`);
    try {
      const path = `${prefix}-${count}.png`;
      await within(20_000, opened.page.screenshot({ path }), "a picture");
      console.log(`        at ${opened.page.url()}, see ${path}`);
      await within(20_000, opened.page.context().close(), "closing");
    } catch (error) {
      console.log(`        no picture: ${error.message}`);
    }
  }
}

/** Asks until `accepts` likes the answer, which is what a person does who sees a page change. */
export async function becomes(ask, accepts, what) {
  const end = Date.now() + LIMIT_MS / 4;
  for (;;) {
    const found = await ask();
    if (accepts(found)) return found;
    if (Date.now() > end) throw new Error(`${what}: still ${JSON.stringify(found)}`);
    await pause(50);
  }
}
