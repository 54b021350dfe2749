/** A reader of JSON reads or refuses a report whatever the type of any of its values. */

import { existsSync, readFileSync } from "node:fs";
import { test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { expectRefusals, oddJson } from "./reading.ts";

const reports = Object.entries(GREEN_REPORTS).flatMap(([format, text]) => {
  if (!/^[[{]/.test(text)) return [];
  const files = ["json", "ndjson"].map((ending) => `${import.meta.dir}/../fixtures/${format}.${ending}`);
  const fixtures = files.filter(existsSync).map((path) => readFileSync(path, "utf8"));
  return [[format, [text, ...fixtures]]] as const;
});

test.each(reports)("%s", (_, texts) => {
  for (const text of texts) expectRefusals(oddJson(text));
});
