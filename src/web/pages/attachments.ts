/** The content of an attachment, for people who are signed in. */

import { StoreAwayError } from "../../attachments/content.ts";
import { readRangeHeaders } from "../../http/byte_range.ts";
import { etagOf, fileReply } from "../../request/file_reply.ts";
import { Reply } from "../../request/reply.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import { selectAttachment } from "../../store/attachments.ts";
import { type Page, page } from "../site/page.ts";
import { PageError } from "../site/page_error.ts";

/** Content never changes, but who may see it does: a browser asks each time whether its copy may be shown. */
const KEPT = { "Cache-Control": "private, no-cache" };

export const attachmentPages: Page[] = [
  page(
    "/projects/:projectId/attachments/:attachmentId",
    { access: "viewer" },
    async ({ fast, project, params, request, attachments, log }) => {
      const file = (await selectAttachment(fast, project.id, params.attachmentId)) ?? refuseAbsent();
      const etag = etagOf(file);
      if (request.headers.get("if-none-match") === etag) return new Reply(304, null, null, { ...KEPT, ETag: etag });
      const onError = (error: unknown) => log.error("Cannot read an attachment", { ...params, error });
      try {
        // The store is another origin, from which pages load nothing.
        const options = { range: readRangeHeaders(request), mayRedirect: false, headers: KEPT, onError };
        return await fileReply(attachments, project.id, file, options);
      } catch (error) {
        if (!(error instanceof StoreAwayError)) throw error;
        onError(error);
        throw new PageError(500, "The store of attachments is not available", "Try again in a moment.");
      }
    },
  ),
];
