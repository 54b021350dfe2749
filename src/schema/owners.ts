/** The ownership file of a project: which owners the test cases of which files and classes have. */

import * as v from "valibot";
import { branchName, count, described, mayBeEmpty, text, time } from "./fields.ts";

export const MAX_OWNERS_BYTES = 524_288;
/** Reading more keeps others waiting. */
export const MAX_OWNERS_LINES = 20_000;

const SYNTAXES = ["github", "gitlab"] as const;
const syntax = v.picklist(SYNTAXES, `expected "github" or "gitlab"`);

export const ownersQuery = v.strictObject({
  syntax: described(
    mayBeEmpty(syntax),
    "The syntax of the file: github or gitlab. Default: gitlab if the file has section headings, otherwise github",
    "github",
  ),
  path: described(mayBeEmpty(text(1_000)), "The path of the file in its repository", ".github/CODEOWNERS"),
  branch: described(
    mayBeEmpty(branchName),
    "The branch that the file is from: a file of another branch than the default one is not stored",
    "main",
  ),
  commit: described(mayBeEmpty(text(200)), "The commit that the file is from", "9f8e7d6c"),
});
export type OwnersQuery = v.InferOutput<typeof ownersQuery>;

export const ownersFile = v.strictObject({
  content: described(v.nullable(v.string()), "The file as it was stored; null: there is none", "/src/cart/ @acme/cart"),
  syntax: described(v.nullable(syntax), "The syntax of the file, github or gitlab; null: there is no file", "github"),
  path: described(v.nullable(v.string()), "Its path in the repository; null: unknown", ".github/CODEOWNERS"),
  branch: described(v.nullable(v.string()), "The branch that it is from; null: unknown", "main"),
  commit: described(v.nullable(v.string()), "The commit that it is from; null: unknown", "9f8e7d6c"),
  storedAt: described(v.nullable(time), "When its content was last changed; null: there is no file"),
  warnings: described(v.array(v.string()), "The lines that could not be read, and why", [
    'Line 3: expected an owner such as "@name", "@group/team" or an e-mail address, got "nobody"',
  ]),
  testCases: described(count, "The number of test cases of the project", 1219),
  unowned: described(count, "The number of test cases without an owner", 40),
});
export type OwnersFile = v.InferOutput<typeof ownersFile>;

export const storedOwners = v.strictObject({
  ...ownersFile.entries,
  stored: described(
    v.boolean(),
    "Whether the file was stored; false: it is unchanged, or comes from another branch than the default branch",
    true,
  ),
});
