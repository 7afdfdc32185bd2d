// Runs the cases on each page and writes a line for each: node run.js '{"pages": [...], "chromium": ..., ...}'

import { pathToFileURL } from "node:url";
import { CASES, PARTICULAR } from "./cases.js";
import { autopsy, open, start, within } from "./browser.js";

/** Beyond this a browser hangs, and whoever waits for this program wants to know where. */
const OVERALL_MS = 20 * 60_000;

/** No case and no set of pictures takes this long. */
const STEP_MS = 3 * 60_000;

const { pages, ...common } = JSON.parse(process.argv[2]);
let at = "starting chromium";
setTimeout(() => {
  console.log(`FAILED  after ${OVERALL_MS / 60_000} minutes still at: ${at}`);
  process.exit(1);
}, OVERALL_MS).unref();

const browser = await start(common);

/** Runs a step, and leaves pictures of the pages that a failed one had open. */
async function step(name, run, screenshots) {
  at = name;
  try {
    await within(STEP_MS, run(browser), name);
  } finally {
    await autopsy(`${screenshots}/failed-${name.replace(/\W+/g, "-")}`);
  }
}

/** Runs the cases of a page; gives how many failed. */
async function check(wanted) {
  let failed = 0;
  const cases = wanted.only ? { ...CASES, ...PARTICULAR } : CASES;
  for (const [name, run] of Object.entries(cases)) {
    if (wanted.only && !wanted.only.includes(name)) continue;
    const begun = Date.now();
    const seconds = () => `${((Date.now() - begun) / 1000).toFixed(1)} s`;
    try {
      await step(name, (browser) => run(browser, wanted), wanted.screenshots);
      console.log(`ok      ${name} (${seconds()})`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name} (${seconds()}): ${error.stack || error.message}`);
    }
  }
  return failed;
}

// Screenshots for a person. A missing one is reported, and is no failure.
const VIEWS = [["desktop", 1280, "light"], ["desktop-dark", 1280, "dark"], ["phone", 390, "light"], ["phone-dark", 390, "dark"]];
async function draw({ address, screenshots }) {
  for (const [name, width, scheme] of VIEWS) {
    const pictures = async (browser) => {
      const { page, close } = await open(browser, address, { width, height: width < 600 ? 844 : 900, scheme });
      await page.screenshot({ path: `${screenshots}/${name}-first.png` });
      await page.screenshot({ path: `${screenshots}/${name}.png`, fullPage: true });
      if (name === "desktop") await page.pdf({ path: `${screenshots}/print.pdf`, format: "A4" });
      await close();
    };
    await step(`pictures ${name}`, pictures, screenshots).catch((error) => console.log(`no picture ${name}: ${error.message}`));
  }
}

console.log(`chromium ${browser.version()}, node ${process.version}`);
let failed = 0;
for (const page of pages) {
  console.log(page.page);
  const wanted = { ...common, ...page, address: pathToFileURL(page.page).href };
  failed += await check(wanted);
  if (common.pictures) await draw(wanted);
}
at = "ending chromium";
await within(30_000, browser.close(), at).catch((error) => console.log(error.message));
// A page that hangs must not keep this program from exiting.
process.exit(failed > 0 ? 1 : 0);
