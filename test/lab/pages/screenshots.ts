/**
 * Takes a picture of every page, light and dark, at 1280 and 375 pixels, of a team with something behind every page:
 * `bun test/lab/pages/screenshots.ts [FOLDER] [PART OF A NAME]`. The cast is that of the tests, so is what runs it.
 */

import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [folder = join(tmpdir(), "assay-screenshots"), part = ""] = process.argv.slice(2);
const child = Bun.spawn([process.execPath, "test", join(import.meta.dir, "pictures.ts"), "--timeout", "900000"], {
  env: { ...process.env, PICTURES_FOLDER: resolve(folder), PICTURES_PART: part },
  stdio: ["ignore", "inherit", "inherit"],
});
process.exit(await child.exited);
