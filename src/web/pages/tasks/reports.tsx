/** The reports that were uploaded for a task. */

import type { Html } from "../../../http/html.ts";
import { machineText } from "../../../rules/ran_on.ts";
import type { UploadRow } from "../../../store/test_runs.ts";
import { counted } from "../../../wording/numbers.ts";
import { AgoCell, TableHead } from "../../components/list.tsx";
import { Tag } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";

export const MAX_UPLOADS = 50;

export function uploadTable(uploads: readonly UploadRow[], isSharded: boolean, now: Date): Html | null {
  if (uploads.length === 0) return null;
  const hasMachines = uploads.some((upload) => machineText(upload) !== "");
  return (
    <>
      <h2>
        Uploads{" "}
        <small>
          {uploads.length < MAX_UPLOADS ? counted(uploads.length, "report") : `the last ${MAX_UPLOADS} reports`}
        </small>
      </h2>
      <div class="card scroll" tabindex={0} role="region" aria-label="Uploads">
        <table>
          <TableHead
            caption="Reports of this task, the newest attempt first"
            columns={[
              "Attempt",
              isSharded && "Shard",
              "Format",
              hasMachines && "Ran on",
              ["Exit code", "number"],
              ["When", "number"],
            ]}
          />
          <tbody>
            {uploads.map((upload) => (
              <tr>
                <td>
                  {upload.number}
                  {upload.partial ? [" ", <Tag>partial</Tag>] : null}
                </td>
                {isSharded ? <td>{upload.shard === 0 ? "all" : upload.shard}</td> : null}
                <td class="soft">{upload.format}</td>
                {hasMachines ? (
                  <td class="soft">
                    <Breakable text={machineText(upload) || "–"} />
                  </td>
                ) : null}
                <td class="number soft">{upload.exitCode ?? "–"}</td>
                <AgoCell at={upload.receivedAt} now={now} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
