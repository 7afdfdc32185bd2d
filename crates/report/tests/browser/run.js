// Runs the cases on a page and writes a line for each: node run.js '{"page": ..., "chromium": ..., ...}'

import { pathToFileURL } from "node:url";
import { CASES, PARTICULAR } from "./cases.js";
import { autopsy, open, scrollThrough, start } from "./browser.js";

/** Beyond this a browser hangs, and whoever waits for this program wants to know where. */
const OVERALL_MS = 15 * 60_000;

const wanted = JSON.parse(process.argv[2]);
wanted.address = pathToFileURL(wanted.page).href;
let at = "starting chromium";
setTimeout(() => {
  console.log(`FAILED  after ${OVERALL_MS / 60_000} minutes still at: ${at}`);
  process.exit(1);
}, OVERALL_MS).unref();

const browser = await start(wanted);
console.log(`chromium ${browser.version()}, node ${process.version}`);
let failed = 0;
const cases = wanted.only ? { ...CASES, ...PARTICULAR } : CASES;
for (const [name, run] of Object.entries(cases)) {
  if (wanted.only && !wanted.only.includes(name)) continue;
  at = name;
  const begun = Date.now();
  const seconds = () => `${((Date.now() - begun) / 1000).toFixed(1)} s`;
  try {
    await run(browser, wanted);
    console.log(`ok      ${name} (${seconds()})`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name} (${seconds()}): ${error.stack || error.message}`);
  }
  await autopsy(`${wanted.screenshots}/failed-${name.replace(/\W+/g, "-")}`);
}

// For a person to look at: no picture is no failure, but is said.
const VIEWS = [["desktop", 1280, "light"], ["desktop-dark", 1280, "dark"], ["phone", 390, "light"], ["phone-dark", 390, "dark"]];
for (const [name, width, scheme] of wanted.pictures ? VIEWS : []) {
  at = `picture ${name}`;
  try {
    const { page, close } = await open(browser, wanted.address, { width, height: width < 600 ? 844 : 900, scheme });
    await page.screenshot({ path: `${wanted.screenshots}/${name}-first.png` });
    await scrollThrough(page);
    await page.screenshot({ path: `${wanted.screenshots}/${name}.png`, fullPage: true });
    if (name === "desktop") await page.pdf({ path: `${wanted.screenshots}/print.pdf`, format: "A4" });
    await close();
  } catch (error) {
    console.log(`no picture ${name}: ${error.message}`);
    await autopsy(`${wanted.screenshots}/failed-${name}`);
  }
}
at = "ending chromium";
await browser.close();
process.exitCode = failed > 0 ? 1 : 0;
