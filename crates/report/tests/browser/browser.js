// Opens a page in Debian's chromium, and notes what goes wrong in it.

import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export async function start(executablePath) {
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/** A page whose errors and requests are kept. Only the file itself may be asked for. */
export async function open(browser, address, { width = 1280, height = 900, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, offline: true });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(file|data|blob):/.test(url)) problems.push(`request: ${url}`);
  });
  const begun = Date.now();
  await page.goto(address);
  await page.waitForSelector('.group[data-drawn="true"]');
  return { page, problems, elapsed_ms: Date.now() - begun, close: () => context.close() };
}

/** Goes through the page, so that every figure comes into sight and is drawn. */
export async function scrollThrough(page) {
  await page.evaluate(async () => {
    const step = innerHeight * 0.8;
    for (let y = 0; y < document.documentElement.scrollHeight; y += step) {
      scrollTo(0, y);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
    }
    scrollTo(0, 0);
  });
}
