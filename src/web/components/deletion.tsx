/** The deletion of a project or team: where settings lead to it, and the form that asks for the name. */

import type { Html, Path, Piece } from "../../http/html.ts";
import { MAX_COUNTED } from "../../store/deletion.ts";
import type { View } from "../site/page.ts";
import { counted, toCount } from "../../wording/numbers.ts";
import { Field, FormError, Form } from "./form.tsx";

type Kind = "project" | "team";

/** The last section of the settings. */
export const DangerZone = ({ what, path }: { what: Kind; path: Path }): Html => (
  <>
    <h2 id="danger">Danger zone</h2>
    <div class="card padded">
      <p>Deleting this {what} removes everything in it, and cannot be undone.</p>
      <p class="actions">
        <a class="button danger" href={path}>
          Delete this {what}…
        </a>
      </p>
    </div>
  </>
);

/** "3 bug reports", or "more than 10,000 bug reports" where counting has stopped. */
export const countedLoss = (count: number, name: string): string =>
  count > MAX_COUNTED ? `more than ${toCount(MAX_COUNTED)} ${name}s` : counted(count, name);

type Deletion = {
  what: Kind;
  name: string;
  /** A line for each kind of thing that is lost. */
  losses: readonly Piece[];
  /** The effect that the deletion has at once. */
  consequence: Piece;
  /** The settings that lead to the deletion. */
  settings: Path;
  csrf: string;
  problem?: string;
  given?: string;
};

/** The page of a deletion. `problem` and `given`: of a form that was refused. */
export const deletionView = ({ what, name, losses, consequence, settings, csrf, problem, given }: Deletion): View => ({
  title: `Delete the ${what}`,
  section: what === "team" ? "team" : "settings",
  ...(problem === undefined ? {} : { status: 400 }),
  body: (
    <>
      <h1>
        Delete the {what} {name}
      </h1>
      <div class="message bad">
        <p>
          <b>This cannot be undone.</b> {consequence}
        </p>
      </div>
      <div class="prose">
        <p>This is deleted for everyone:</p>
        <ul>
          {losses.map((loss) => (
            <li>{loss}</li>
          ))}
        </ul>
      </div>
      <div class="spaced">
        <FormError message={problem} />
        <Form to={`${settings}/delete`} csrf={csrf}>
          <Field
            label={`Type the name of the ${what} to confirm`}
            name="confirm"
            value={given}
            required
            autocomplete="off"
            isCode
            hint={["The name is ", <code>{name}</code>, "."]}
          />
          <div class="actions">
            <button class="danger">Delete this {what}</button>
            <a class="button" href={settings}>
              Cancel
            </a>
          </div>
        </Form>
      </div>
    </>
  ),
});
