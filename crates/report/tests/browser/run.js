// Runs the cases on a page and writes a line for each: node run.js '{"page": ..., "chromium": ..., ...}'

import { pathToFileURL } from "node:url";
import { CASES, PARTICULAR } from "./cases.js";
import { autopsy, open, start, within } from "./browser.js";

/** Beyond this a browser hangs, and whoever waits for this program wants to know where. */
const OVERALL_MS = 20 * 60_000;

/** No case and no set of pictures takes this long. */
const STEP_MS = 3 * 60_000;

const wanted = JSON.parse(process.argv[2]);
wanted.address = pathToFileURL(wanted.page).href;
let at = "starting chromium";
setTimeout(() => {
  console.log(`FAILED  after ${OVERALL_MS / 60_000} minutes still at: ${at}`);
  process.exit(1);
}, OVERALL_MS).unref();

const browser = await start(wanted);

/** Runs a step, and leaves pictures of the pages that a failed one had open. */
async function step(name, run) {
  at = name;
  try {
    await within(STEP_MS, run(browser), name);
  } finally {
    await autopsy(`${wanted.screenshots}/failed-${name.replace(/\W+/g, "-")}`);
  }
}

console.log(`chromium ${browser.version()}, node ${process.version}`);
let failed = 0;
const cases = wanted.only ? { ...CASES, ...PARTICULAR } : CASES;
for (const [name, run] of Object.entries(cases)) {
  if (wanted.only && !wanted.only.includes(name)) continue;
  const begun = Date.now();
  const seconds = () => `${((Date.now() - begun) / 1000).toFixed(1)} s`;
  try {
    await step(name, (browser) => run(browser, wanted));
    console.log(`ok      ${name} (${seconds()})`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name} (${seconds()}): ${error.stack || error.message}`);
  }
}

// Screenshots for a person. A missing one is reported, and is no failure.
const VIEWS = [["desktop", 1280, "light"], ["desktop-dark", 1280, "dark"], ["phone", 390, "light"], ["phone-dark", 390, "dark"]];
for (const [name, width, scheme] of wanted.pictures ? VIEWS : []) {
  const pictures = async (browser) => {
    const { page, close } = await open(browser, wanted.address, { width, height: width < 600 ? 844 : 900, scheme });
    await page.screenshot({ path: `${wanted.screenshots}/${name}-first.png` });
    await page.screenshot({ path: `${wanted.screenshots}/${name}.png`, fullPage: true });
    if (name === "desktop") await page.pdf({ path: `${wanted.screenshots}/print.pdf`, format: "A4" });
    await close();
  };
  await step(`pictures ${name}`, pictures).catch((error) => console.log(`no picture ${name}: ${error.message}`));
}
at = "ending chromium";
await within(30_000, browser.close(), at).catch((error) => console.log(error.message));
// A page that hangs must not keep this program from exiting.
process.exit(failed > 0 ? 1 : 0);
