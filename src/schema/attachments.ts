/** Attachments: files that explain the results of a run. */

import * as v from "valibot";
import { count, described, mayBeEmpty, text, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

const MAX_PATH = 1_000;

const file = {
  id: described(uuid, "The id of the attachment, with which its content is read"),
  name: described(v.string(), "What it is called: by the report, else the last part of its path", "cart-actual.png"),
  path: described(
    v.string(),
    "The path under which it was uploaded and the report names it, with forward slashes",
    "test-results/cart/cart-actual.png",
  ),
  contentType: described(
    v.string(),
    "What its first bytes show it to be: a PNG, JPEG, GIF or WebP picture, a WebM or MP4 video, plain text or a ZIP archive; " +
      "anything else is application/octet-stream",
    "image/png",
  ),
  bytes: described(count, "Its size", 48_213),
  attempt: described(count, "The attempt of the run that it is from; 0: it came before any report", 1),
  url: described(v.string(), "Where people who are signed in open it in the dashboard"),
};

/** A file of a run. */
export const attachment = v.strictObject({
  ...file,
  sha256: described(v.string(), "The SHA-256 of its content, hexadecimal"),
  testCaseIds: described(
    v.array(uuid),
    "The test cases whose results refer to it, the first 20; none: it belongs to the run as a whole",
  ),
  createdAt: described(time, "When it arrived"),
});
export type Attachment = v.InferOutput<typeof attachment>;
export const attachmentPage = listPage(attachment);
export const attachmentQuery = v.strictObject(pageQuery);

/** A file of one result. */
export const caseAttachment = v.strictObject(file);
export type CaseAttachment = v.InferOutput<typeof caseAttachment>;

export const caseAttachments = described(
  v.array(caseAttachment),
  "The files that explain it, those of the last attempt first; the first 20. Files that have not arrived are left out",
);

const lease_id = described(v.optional(uuid), "For runners: the lease of the run, which may have ended");

export const newAttachments = v.strictObject({ lease_id });

export const newAttachment = v.strictObject({
  lease_id,
  path: described(
    text(MAX_PATH),
    "The path under which the report names the file. Backslashes are taken for slashes, and a leading ./ is ignored. A file that no " +
      "report names belongs to the run as a whole",
    "test-results/cart/cart-actual.png",
  ),
  name: described(mayBeEmpty(text(200)), "What to call it; default: the last part of the path", "cart-actual.png"),
  content_type: described(
    mayBeEmpty(text(200)),
    "Accepted for clients that know it. What the file is served as follows from its content",
    "image/png",
  ),
});

export const uploadedAttachments = v.strictObject({
  attachments: described(v.array(attachment), "The attachments that the files are now"),
  warnings: described(
    v.array(v.string()),
    "Why files were not stored: they are beyond a limit, or only test cases that passed refer to them",
    ['"trace.zip" is not stored: larger than 50 MiB'],
  ),
});

export const uploadedAttachment = v.strictObject({
  attachment: described(v.nullable(attachment), "The attachment; null: it was not stored"),
  reason: described(
    v.nullable(v.string()),
    "Why it was not stored; null: it was",
    "Only test cases that passed refer to it: upload the report with attachments=all to keep such files",
  ),
});
