/** What a list shows if it has no rows. */

import type { Html, Piece } from "../../http/html.ts";

/** Says why a list is empty. `action` is a link or a sentence about what a reader may want to do instead. */
export const Empty = ({ action, children }: { action?: Piece; children?: Piece }): Html => (
  <div class="card empty">
    <p>{children}</p>
    {action === undefined ? null : <p>{action}</p>}
  </div>
);

export const FirstReportLink = ({ projectId }: { projectId: string }): Html => (
  <a class="button main" href={`/projects/${projectId}/onboarding`}>
    Send the first report
  </a>
);
