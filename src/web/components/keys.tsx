/** Keys on pages: the warning before one is revoked, and the page that shows a new one once. */

import type { Html, Path, Piece } from "../../http/html.ts";
import type { View } from "../site/page.ts";
import { Danger } from "./form.tsx";
import { Ago } from "./text.tsx";

export const LastUse = ({ at, now }: { at: string | null; now: Date }): Html => (
  <>{at === null ? "Never used." : ["Last used ", <Ago at={at} now={now} />, "."]}</>
);

type RevokeProperties = {
  action: Path;
  csrf: string;
  name: string;
  shown: { leading: string; lastUsedAt: string | null };
  now: Date;
};

export const RevokeKey = ({ action, csrf, name, shown: { leading, lastUsedAt }, now }: RevokeProperties): Html => (
  <Danger
    action={action}
    csrf={csrf}
    label={["Revoke", <span class="visually-hidden"> {name}</span>]}
    loss={[`Requests with ${leading}… will be refused. `, <LastUse at={lastUsedAt} now={now} />]}
  />
);

type NewKey = {
  heading: string;
  key: string;
  /** A sentence below the heading. */
  note?: string | false;
  section: NonNullable<View["section"]>;
  links: Html;
};

/** The page that shows a new key. `uses`: examples with it. */
export const newKeyView = ({ heading, key, note, section, links }: NewKey, uses: Piece): View => ({
  title: "New key",
  section,
  body: (
    <>
      <h1>{heading}</h1>
      <div class="message good">
        <p>
          <b>Copy it now. It is not shown again.</b>
          {note ? ` ${note}` : null}
        </p>
      </div>
      <pre data-copy>{key}</pre>
      {uses}
      <p class="actions">{links}</p>
    </>
  ),
});

type CiProperties = { publicUrl: string; projectId: string; apiKey: string };

export const CiVariables = ({ publicUrl, projectId, apiKey }: CiProperties): Html => (
  <>
    <h2>
      In CI and for runners <small>store the key as a secret</small>
    </h2>
    <pre data-copy>{`\nASSAY_URL=${publicUrl}\nASSAY_PROJECT=${projectId}\nASSAY_KEY=${apiKey}`}</pre>
  </>
);
