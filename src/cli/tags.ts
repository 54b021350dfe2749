/** The tags of an upload: the option --tag, which `upload` and `split` have, and the variable ASSAY_TAGS. */

import * as v from "valibot";
import { tagsText } from "../schema/tags.ts";
import { UsageError } from "./usage.ts";

export const TAG_HELP = `  --tag KEY:VALUE         what distinguishes this variant of the task in a matrix, such as browser:webkit; may be repeated, up
                          to 8 times (default: ASSAY_TAGS, with commas between them, or a JSON object such as GitHub's
                          toJSON(matrix), of which the field "shard" is ignored if the shard is known)`;

type TagSources = {
  /** Values of the option. */
  options: readonly string[];
  environment: Record<string, string | undefined>;
  /** Whether the job is known to be one of several shards. */
  isShard: boolean;
};

const VARIABLE = "ASSAY_TAGS";

/** The fields of a matrix: a nested one has no name that everybody would expect. */
const matrix = v.record(v.string(), v.union([v.string(), v.number(), v.boolean(), v.null()]));

function ofMatrix(text: string, isShard: boolean): string {
  let fields: v.InferOutput<typeof matrix>;
  try {
    fields = v.parse(matrix, JSON.parse(text));
  } catch {
    throw new UsageError(`${VARIABLE}: expected a JSON object of texts, numbers, true and false, got "${text}"`);
  }
  const known = Object.entries(fields).filter(
    ([key, value]) => value !== null && value !== "" && !(isShard && key === "shard"),
  );
  // A comma would end the tag.
  const separated = known.find(([, value]) => String(value).includes(","));
  if (separated) throw new UsageError(`${VARIABLE}: expected values without commas, got "${separated[1]}"`);
  return known.map(([key, value]) => `${key}:${value}`).join(",");
}

/** Returns the tags; the option comes before the variable. Throws UsageError. */
export function readTags({ options, environment, isShard }: TagSources): string[] {
  const given = options.join(",");
  const isGiven = given.replaceAll(",", "").trim() !== "";
  // GitHub writes the matrix of a job without one as null.
  const value = environment[VARIABLE]?.trim() ?? "";
  const stated = value === "null" ? "" : value;
  const text = isGiven ? given : stated.startsWith("{") ? ofMatrix(stated, isShard) : stated;
  const { success, output, issues } = v.safeParse(tagsText, text);
  if (!success) throw new UsageError(`${isGiven ? "--tag" : VARIABLE}: ${issues[0].message}, got "${text}"`);
  return output;
}
