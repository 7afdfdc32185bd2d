// Runs the cases on a page and writes a line for each: node run.js '{"address": ..., ...}'

import { CASES } from "./cases.js";
import { open, scrollThrough, start } from "./browser.js";

const wanted = JSON.parse(process.argv[2]);
const browser = await start(wanted.chromium);
let failed = 0;
for (const [name, run] of Object.entries(CASES)) {
  if (wanted.only && !wanted.only.includes(name)) continue;
  try {
    await run(browser, wanted);
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.message}`);
  }
}

// For a person to look at.
const VIEWS = [["desktop", 1280, "light"], ["desktop-dark", 1280, "dark"], ["phone", 390, "light"]];
for (const [name, width, scheme] of wanted.screenshots ? VIEWS : []) {
  const { page, close } = await open(browser, wanted.address, { width, height: width < 600 ? 844 : 900, scheme });
  await page.screenshot({ path: `${wanted.screenshots}/${name}-first.png` });
  await scrollThrough(page);
  await page.screenshot({ path: `${wanted.screenshots}/${name}.png`, fullPage: true });
  if (name === "desktop") await page.pdf({ path: `${wanted.screenshots}/print.pdf`, format: "A4" });
  await close();
}
await browser.close();
process.exitCode = failed > 0 ? 1 : 0;
