/** What a list shows if it has no rows. */

import type { Html, Piece } from "../../http/html.ts";

/** Says why a list is empty. `action` is a link to what a reader may want to do instead. */
export const Empty = ({ action, children }: { action?: Html | undefined; children?: Piece }): Html => (
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
