/** Explains whether a test is reliable. */

import type { Html } from "../../../http/html.ts";
import type { FlakySign } from "../../../schema/test_cases.ts";
import type { ListedCommit } from "../../../store/commits.ts";
import type { CaseRecord, FirstBad } from "../../../store/case_record.ts";
import type { HistoryRow, TestCaseRow } from "../../../store/test_cases.ts";
import { flakeWords } from "../../../wording/flake_rate.ts";
import { counted, toCount, toDay } from "../../../wording/numbers.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { Ago, Commit, CommitText } from "../../components/text.tsx";
import { executionPath } from "../../site/paths.ts";
import { isCounted, isFailure, tallyOf } from "./results.tsx";

const commitAt = (hash: string | null, at: string | null, now: Date): (Html | string)[] => [
  ...(hash === null ? [] : [" at ", <Commit hash={hash} />]),
  ...(at === null
    ? []
    : now.getTime() - Date.parse(at) < 86_400_000
      ? [" ", <Ago at={at} now={now} />]
      : [` on ${toDay(at)}`]),
];

type Trust = {
  test: TestCaseRow;
  record: CaseRecord | undefined;
  rows: readonly HistoryRow[];
  firstBad: FirstBad | undefined;
};

/** Returns "passed the last 3 times". */
const passesInWords = (record: CaseRecord | undefined): string =>
  record?.clean === 1 ? "passed the last time" : `passed the last ${toCount(record?.clean ?? 0)} times`;

function newText({ rows }: Trust): Html {
  const results = rows.filter(isCounted);
  const failures = results.filter(isFailure);
  if (results.length === 0) return <>New: {rows.length > 0 ? "always skipped so far" : "no result yet"}</>;
  return (
    <>
      New:{" "}
      {failures.length === 0
        ? `passed all ${toCount(results.length)} times`
        : `${tallyOf(failures)} of ${counted(results.length, "result")}`}{" "}
      so far
    </>
  );
}

function healthyText({ record, rows }: Trust, branch: string): Html {
  if ((record?.clean ?? 0) > 0) return <>Healthy: {passesInWords(record)}</>;
  const { branch: where } = rows.find(isCounted)!;
  return (
    <>
      Healthy on {branch}, failed last
      {where === null ? null : (
        <>
          {" "}
          on <code>{where}</code>
        </>
      )}
    </>
  );
}

/** Returns the verdict of a test in words. */
export function trustOf(trust: Trust, branch: string, now: Date): { status: string; text: Html } {
  const { test, record, rows, firstBad } = trust;
  const failing = record?.failing ?? 0;
  const since = firstBad?.isFirst ? <>, first{commitAt(firstBad.bad.commit, firstBad.bad.completedAt, now)}</> : null;
  if (test.health === "removed")
    return {
      status: "removed",
      text: (
        <>
          Removed: the last runs of <code>{test.taskSlug}</code> on {branch} did not contain it
        </>
      ),
    };
  if (test.health === "broken")
    return {
      status: "broken",
      text: (
        <>
          Broken on {branch}: {failing === 1 ? "failed the last time" : `failed the last ${toCount(failing)} times`}
          {since}
        </>
      ),
    };
  if (test.health === "flaky") return { status: "flaky", text: <>Flaky: {flakeWords(test)}</> };
  if (failing > 0)
    return {
      status: "failed",
      text: (
        <>
          Fails on {branch} now: {failing === 1 ? "for the first time" : `${toCount(failing)} times in a row`}
          {since}
        </>
      ),
    };
  if (test.health === "new" || !rows.some(isCounted)) return { status: "new", text: newText(trust) };
  return { status: "passed", text: healthyText(trust, branch) };
}

const FLAKY_SIGN_WORDS: Record<FlakySign, string> = {
  retry: "it passed on retry within one run, on the same code",
  same_commit: "a later run passed it on the same commit",
  unexplained: "it failed without anything else that explains it",
};

export function whyFlaky({ flaky }: TestCaseRow, record: CaseRecord | undefined, now: Date): Html | null {
  if (!flaky) return null;
  const left = record ? Math.max(1, record.recoversAfter - record.clean) : 0;
  return (
    <section class="card padded prose">
      <h2 class="first">Why this test is flaky</h2>
      <ul>
        {flaky.signs.map((sign) => (
          <li>{FLAKY_SIGN_WORDS[sign]}</li>
        ))}
      </ul>
      <p>
        {flaky.since === null ? null : (
          <>
            Since {toDay(flaky.since)}
            {flaky.lastSeenAt === null ? "" : [", last seen ", <Ago at={flaky.lastSeenAt} now={now} />]}.{" "}
          </>
        )}
        {record ? (
          <>
            It recovers after{" "}
            <b>
              {toCount(left)} more {left === 1 ? "pass" : "passes"}
            </b>{" "}
            in a row{record.clean > 0 ? `: ${toCount(record.clean)} of ${toCount(record.recoversAfter)} so far` : ""}.
          </>
        ) : null}
      </p>
    </section>
  );
}

const buildLink = (projectId: string, { executionId, ...build }: NonNullable<FirstBad["good"]>): Html => (
  <>
    <a href={executionPath(projectId, executionId)}>{executionName(build)}</a>
    {build.commit === null ? null : [" ", <Commit hash={build.commit} />]}
  </>
);

export function whereItBegan(
  projectId: string,
  firstBad: (FirstBad & { suspects: readonly ListedCommit[] }) | undefined,
  branch: string,
  now: Date,
): Html | null {
  if (!firstBad) return null;
  const { bad, good, isFirst, suspects } = firstBad;
  return (
    <section class="card padded prose">
      <h2 class="first">First failure on {branch}</h2>
      <dl class="facts">
        <dt>passed last</dt>
        <dd>
          {good ? (
            <>
              {buildLink(projectId, good)}{" "}
              <span class="soft">{good.completedAt === null ? null : <Ago at={good.completedAt} now={now} />}</span>
            </>
          ) : isFirst ? (
            "not in the stored results"
          ) : (
            "further back than this page searches"
          )}
        </dd>
        <dt>{isFirst ? "failed first" : "failed already"}</dt>
        <dd>
          {buildLink(projectId, bad)}{" "}
          <span class="soft">{bad.completedAt === null ? null : <Ago at={bad.completedAt} now={now} />}</span>
        </dd>
      </dl>
      {suspects.length > 0 ? (
        <>
          <p>{suspects.length === 1 ? "One commit is" : `${suspects.length} commits are`} between the two:</p>
          <ul>
            {suspects.map(({ hash, subject, author }) => (
              <li>
                <Commit hash={hash} /> <CommitText of={{ commitSubject: subject, commitAuthor: author }} />
              </li>
            ))}
          </ul>
        </>
      ) : good?.commit && bad.commit && good.commit !== bad.commit ? (
        <p>
          The breaking change is between the two:{" "}
          <code>
            git log {good.commit.slice(0, 12)}..{bad.commit.slice(0, 12)}
          </code>
        </p>
      ) : null}
    </section>
  );
}
