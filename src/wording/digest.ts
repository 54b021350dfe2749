/** Words for the digest of a project: a line for each thing, each with its page, and nothing that is zero. */

import type { Digest } from "../schema/digest.ts";
import type { LinkedLine, Notification } from "../schema/notifications.ts";
import { executionsUrl, bugsUrl, projectUrl, testsUrl } from "../schema/urls.ts";
import { caseTitle } from "./case_title.ts";
import { flakeCountWords } from "./flake_rate.ts";
import { counted, toCount, toDay, toDuration } from "./numbers.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Returns "the week before", "the 3 days before", "the day before", "the 5 hours before" or "the hour before". */
function periodBefore({ since, until }: Digest): string {
  const ms = Date.parse(until) - Date.parse(since);
  const days = Math.round(ms / DAY_MS);
  if (days === 7) return "the week before";
  if (days > 1) return `the ${days} days before`;
  const hours = Math.round(ms / HOUR_MS);
  return days === 1 ? "the day before" : hours > 1 ? `the ${hours} hours before` : "the hour before";
}

/** Returns ", 3 more than the week before", or nothing if it is the same. */
function difference(count: number, before: number, than: string): string {
  if (count === before) return "";
  return `, ${toCount(Math.abs(count - before))} ${count > before ? "more" : "fewer"} than ${than}`;
}

const percent = (part: number, whole: number) => `${Math.round((100 * part) / whole)} %`;

/** Returns "5.2 hours", "12 minutes" or "less than a minute". */
function timeWords(ms: number): string {
  if (ms < MINUTE_MS) return "less than a minute";
  if (ms < HOUR_MS) return counted(Math.floor(ms / MINUTE_MS), "minute");
  return `${(ms / HOUR_MS).toFixed(1).replace(/\.0$/, "")} hours`;
}

function flakyLines({ flaky }: Digest, url: string, than: string): LinkedLine[] {
  const { count, before, became, recovered } = flaky;
  const changes = flaky.becameCount + flaky.recoveredCount;
  return [
    ...(count + changes > 0
      ? [{ text: `${counted(count, "flaky test")}${difference(count, before, than)}`, url }]
      : []),
    ...became.map((test) => ({
      text: `Became flaky: ${caseTitle(test)} (failed ${flakeCountWords({ flakeFailures: test.failed, flakeResults: test.results })})`,
      url: test.url,
    })),
    ...more(flaky.becameCount - became.length, "became flaky", url),
    ...recovered.map((test) => ({ text: `Recovered: ${caseTitle(test)}`, url: test.url })),
    ...more(flaky.recoveredCount - recovered.length, "recovered", url),
  ];
}

const more = (count: number, what: string, url: string): LinkedLine[] =>
  count > 0 ? [{ text: `${counted(count, "more test")} ${what}`, url }] : [];

function bugLines({ bugs }: Digest, url: string, than: string): LinkedLine[] {
  const { opened, resolved, open, oldest } = bugs;
  const parts = [
    opened.count + opened.before > 0
      ? `${counted(opened.count, "bug")} opened${difference(opened.count, opened.before, than)}`
      : "",
    resolved.count + resolved.before > 0
      ? `${toCount(resolved.count)} resolved${difference(resolved.count, resolved.before, than)}`
      : "",
    open > 0 ? `${toCount(open)} open` : "",
  ].filter((part) => part !== "");
  return [
    ...(parts.length > 0 ? [{ text: sentence(parts.join("; ")), url }] : []),
    ...oldest.map((bug) => ({ text: `Open since ${toDay(bug.createdAt)}: #${bug.number} ${bug.title}`, url: bug.url })),
  ];
}

/** Returns a part such as "2 resolved; 3 open" with the noun that the first part lacks. */
const sentence = (text: string): string => (/^[\d,]+ bugs? /.test(text) ? text : `Bugs: ${text}`);

function buildLines({ builds }: Digest, url: string, than: string): LinkedLine[] {
  if (builds === null) return [];
  const { branch, count, before, passed, passedBefore, timesRed, redMs, redMsBefore, rescued } = builds;
  const shareBefore = before === 0 ? "" : `; ${than}: ${percent(passedBefore, before)}`;
  const redBefore = before === 0 ? "" : `; ${than}: ${redMsBefore === 0 ? "never" : timeWords(redMsBefore)}`;
  const turned = timesRed === 0 ? "" : ` and turned red ${timesRed === 1 ? "once" : `${toCount(timesRed)} times`}`;
  return [
    {
      text: `${branch}: ${toCount(passed)} of ${counted(count, "build")} passed (${percent(passed, count)}${shareBefore})`,
      url,
    },
    ...(redMs > 0 ? [{ text: `${branch} was red for ${timeWords(redMs)}${turned}${redBefore}`, url }] : []),
    ...(rescued.count > 0
      ? [
          {
            text: `${counted(rescued.count, "build")} passed because a gate forgave failures${difference(rescued.count, rescued.before, than)}`,
            url,
          },
        ]
      : []),
  ];
}

const slowLines = ({ slower, slowest }: Digest): LinkedLine[] => [
  ...slower.map((test) => ({
    text: `Slower: ${caseTitle(test)} took ${toDuration(test.durationMs)} in ${counted(test.runs, "run")}, usually ${toDuration(test.usualMs)}`,
    url: test.url,
  })),
  ...slowest.map((test) => ({
    text: `Slowest: ${caseTitle(test)} took at most ${toDuration(test.p95Ms)} in 95 % of its runs`,
    url: test.url,
  })),
];

/** Returns the message of a digest. */
export function toDigestNotice(project: { id: string; name: string }, digest: Digest, publicUrl: string): Notification {
  const than = periodBefore(digest);
  const url = projectUrl(publicUrl, project.id);
  const links = [
    ...buildLines(digest, executionsUrl(publicUrl, project.id), than),
    ...flakyLines(digest, testsUrl(publicUrl, project.id, "flaky"), than),
    ...bugLines(digest, bugsUrl(publicUrl, project.id), than),
    ...slowLines(digest),
  ];
  const whose = digest.owners === null ? "" : ` for ${digest.owners.join(", ")}`;
  const days = [...new Set([toDay(digest.since), toDay(digest.until)])].join(" to ");
  const title = `${project.name}: test digest${whose}, ${days}`;
  return {
    type: "digest",
    occurredAt: digest.until,
    tone: "neutral",
    title,
    subject: title,
    text: `What changed, compared with ${than}`,
    facts: [],
    lines: [],
    links,
    url,
    buildUrl: null,
    branch: null,
    commit: null,
    pullRequest: null,
    topic: `${project.id} digest`,
    state: null,
    data: { project: { id: project.id, name: project.name, url }, digest },
  };
}
