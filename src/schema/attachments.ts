/** Attachments: files that explain the results of a run. */

import * as v from "valibot";
import { count, described, mayBeEmpty, text, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

const MAX_PATH = 1_000;

const file = {
  id: described(uuid, "The id of the attachment, with which its content is read"),
  name: described(v.string(), "The name that the report uses, otherwise the last part of the path", "cart-actual.png"),
  path: described(
    v.string(),
    "The path of the file in the report, with forward slashes",
    "test-results/cart/cart-actual.png",
  ),
  contentType: described(
    v.string(),
    "The type that Assay detects from the first bytes: PNG, JPEG, GIF, WebP, WebM, MP4, plain text or ZIP; " +
      "application/octet-stream for all other files",
    "image/png",
  ),
  bytes: described(count, "Its size", 48_213),
  attempt: described(count, "The attempt of the run that the file belongs to; 0: it was uploaded before any report", 1),
  url: described(v.string(), "The address of the file in the dashboard, for people who are signed in"),
};

/** A file of a run. */
export const attachment = v.strictObject({
  ...file,
  sha256: described(v.string(), "The SHA-256 of its content, hexadecimal"),
  testCaseIds: described(
    v.array(uuid),
    "The test cases whose results name the file, the first 20; empty: it belongs to the run as a whole",
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
  "The attachments of the result, the first 20, those of the last attempt first. Files that were not uploaded are omitted",
);

const lease_id = described(v.optional(uuid), "For runners: the lease of the run, which may have ended");

export const newAttachments = v.strictObject({ lease_id });

export const newAttachment = v.strictObject({
  lease_id,
  path: described(
    text(MAX_PATH),
    "The path that the report uses for the file. Backslashes are replaced by slashes, and a leading ./ is removed. A file that no " +
      "report names belongs to the run as a whole",
    "test-results/cart/cart-actual.png",
  ),
  name: described(mayBeEmpty(text(200)), "The name to show; default: the last part of the path", "cart-actual.png"),
  content_type: described(
    mayBeEmpty(text(200)),
    "Ignored: Assay detects the type from the content. Accepted so that clients may send it",
    "image/png",
  ),
});

export const uploadedAttachments = v.strictObject({
  attachments: described(v.array(attachment), "The stored attachments"),
  warnings: described(
    v.array(v.string()),
    "Why files were not stored: they exceed a limit, or only passed test cases name them",
    ['Attachment "trace.zip" was not stored: larger than 50 MiB (MAX_ATTACHMENT_MB of the server)'],
  ),
});

export const uploadedAttachment = v.strictObject({
  attachment: described(v.nullable(attachment), "The attachment; null: it was not stored"),
  reason: described(
    v.nullable(v.string()),
    "Why the file was not stored; null: it was stored",
    "Only test cases that passed refer to it: upload the report with attachments=all to keep such files",
  ),
});
