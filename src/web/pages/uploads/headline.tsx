/** Counts accepted and rejected uploads, and explains the rejections. */

import type { Html, Path } from "../../../http/html.ts";
import { adviceFor } from "../../../rules/upload_advice.ts";
import { KEPT_HOURS } from "../../../schema/uploads.ts";
import { type UploadTally, selectTaken } from "../../../store/uploads.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { Ago } from "../../components/text.tsx";

/** Maximum number of counted uploads. */
export const MAX_COUNTED = 1_000;

type Taken = Awaited<ReturnType<typeof selectTaken>>;

export const sum = (tally: readonly UploadTally[], outcome: string): number =>
  tally.reduce((total, row) => (row.outcome === outcome ? total + row.number : total), 0);

export const newest = (tally: readonly UploadTally[], outcome: string): string | undefined =>
  tally
    .flatMap((row) => (row.outcome === outcome ? [row.lastAt] : []))
    .toSorted()
    .at(-1);

export const PERIOD = `the last ${KEPT_HOURS} hours`;

type Headline = { status: string; text: string };

const was = (number: number) => (number === 1 ? "was" : "were");

const wholeOf = (number: number): string =>
  number === 1 ? "The only upload" : number === 2 ? "Both uploads" : `All ${counted(number, "upload")}`;

/** Mentions rejected uploads first, because their results are missing. */
export function uploadsHeadline(tally: readonly UploadTally[], taken: Taken): Headline {
  const [refused, warned] = [sum(tally, "refused"), sum(tally, "warned")];
  const all = taken.number + refused;
  const isMany = taken.number >= MAX_COUNTED;
  const part = (number: number) =>
    number === all
      ? `${wholeOf(all)} of ${PERIOD}`
      : `${toCount(number)} of ${isMany ? `more than ${toCount(MAX_COUNTED)} uploads` : counted(all, "upload")} of ${PERIOD}`;
  if (refused > 0) return { status: "failed", text: `${part(refused)} ${was(refused)} rejected` };
  if (warned > 0) return { status: "flaky", text: `${part(warned)} had warnings, none was rejected` };
  if (all === 0) return { status: "queued", text: `No uploads in ${PERIOD}` };
  const these = isMany ? `More than ${toCount(MAX_COUNTED)} uploads of ${PERIOD}` : part(all);
  return { status: "passed", text: `${these} ${was(all)} accepted` };
}

/** Returns "All" or "2 of 5". */
const shareOfUploads = (number: number, all: number): string =>
  number === all ? "All" : `${toCount(number)} of ${toCount(all)}`;

/** Maximum number of messages. */
const MAX_MESSAGES = 3;

/** Lists the most frequent messages, with advice for each. */
export function reasons(tally: readonly UploadTally[], outcome: "refused" | "warned"): Html | null {
  const rows = tally.filter((row) => row.outcome === outcome);
  if (rows.length === 0) return null;
  const all = sum(rows, outcome);
  const messages = rows
    .slice(0, MAX_MESSAGES)
    .map((row) => ({ ...row, advice: adviceFor({ statusCode: 400, ...row }) }));
  const others = rows.length - messages.length;
  return (
    <ul class="reasons">
      {messages.map(({ text, number, advice }, index) => (
        <li class="long">
          {all === 1 ? "" : `${shareOfUploads(number, all)}: `}
          <q>{text}</q>
          {advice === undefined || advice === messages[index + 1]?.advice ? null : <p class="hint">{advice}</p>}
        </li>
      ))}
      {others > 0 ? <li class="soft small">and {counted(others, "other reason")}, below</li> : null}
    </ul>
  );
}

export function nothing(base: Path, lastAt: string | undefined, now: Date): Html {
  return (
    <div class="card padded prose">
      <p>
        {lastAt === undefined
          ? "This project has no reports yet."
          : ["The last execution began ", <Ago at={lastAt} now={now} />, "."]}{" "}
        No uploads were rejected either. CI does not reach this server, or it does not use the key of this project.
      </p>
      <ul>
        <li>Does the upload step run, even if tests fail? Check the log of the step: curl prints why it failed.</li>
        <li>
          Is the URL right, and can CI reach it? Requests with a wrong key get a 401 and are not listed here, because
          they cannot be attributed to a project.
        </li>
        <li>Was a new key generated? The previous key stopped working at that moment.</li>
      </ul>
      <p>
        <a class="button" href={`${base}/onboarding`}>
          Upload command
        </a>
      </p>
    </div>
  );
}
