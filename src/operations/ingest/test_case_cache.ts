/** The numbers of the test cases of whole reports, which are kept: most reports hold the cases of one that came before. */

import { countOf, createDigests, type Digests, isSame } from "../../rules/digest_table.ts";
import type { Sql } from "../../database/connect.ts";
import { selectTestCaseNumbers } from "../../store/test_case_names.ts";

/** In the order of the report; undefined where a case is not known, or two are one. */
type ReportNumbers = readonly number[] | undefined;

type NumberedReport = { digests: Digests; numbers: ReportNumbers; version: string };

/** Of all reports together, each some 30 bytes: 6 MB. */
const MAX_KEPT = 200_000;
/** What a report takes beside its cases is as much as so many of them. */
const CASES_OF_REPORT = 32;

/** Those that came last, as far as there is room for `max` cases. */
export function createKeptReports(max = MAX_KEPT) {
  const reports = new Map<string, NumberedReport>();
  let size = 0;
  const sizeOf = ({ digests }: NumberedReport) => countOf(digests) + CASES_OF_REPORT;

  // Two that share these would take turns here, and nothing worse: digests are random.
  const nameOf = (projectId: string, digests: Digests) =>
    `${projectId} ${digests.length} ${digests[0]} ${digests.at(-1)}`;
  function forget(name: string, report: NumberedReport): void {
    reports.delete(name);
    size -= sizeOf(report);
  }

  return {
    find(projectId: string, digests: Digests): NumberedReport | undefined {
      const name = nameOf(projectId, digests);
      const report = reports.get(name);
      if (!report || !isSame(report.digests, digests)) return undefined;
      reports.delete(name);
      reports.set(name, report);
      return report;
    },
    keep(projectId: string, report: NumberedReport): void {
      const name = nameOf(projectId, report.digests);
      const former = reports.get(name);
      if (former) forget(name, former);
      reports.set(name, report);
      size += sizeOf(report);
      for (const [name, oldest] of reports) {
        if (size <= max) break;
        forget(name, oldest);
      }
    },
  };
}

const KEPT = createKeptReports();

/**
 * Begins to look up what is not kept of several reports. What it answers is to be asked with the version that the names
 * have in the same transaction, and answers by the places of the reports.
 */
export function lookUpNumbers(
  sql: Sql,
  projectId: string,
  reports: readonly Digests[],
  kept = KEPT,
): (version: string) => Promise<ReportNumbers[]> {
  // The same task again and again is what most of them are.
  const lists: Digests[] = [];
  const places = reports.map((digests) => {
    const place = lists.findIndex((list) => isSame(list, digests));
    return place === -1 ? lists.push(digests) - 1 : place;
  });
  const found = lists.map((digests) => kept.find(projectId, digests));

  async function lookUp(isWanted: (one: NumberedReport | undefined) => boolean): Promise<void> {
    const wanted = [...lists.keys()].filter((place) => isWanted(found[place]));
    if (wanted.length === 0) return;
    const all = join(wanted.map((place) => lists[place]!));
    const { numbers, version } = await selectTestCaseNumbers(sql, projectId, all);
    let start = 0;
    for (const place of wanted) {
      const digests = lists[place]!;
      const own = numbers.slice(start, (start += countOf(digests)));
      const isWhole = !own.includes(null) && new Set(own).size === own.length;
      const report = { digests, numbers: isWhole ? (own as number[]) : undefined, version };
      found[place] = report;
      if (isWhole) kept.keep(projectId, report);
    }
  }

  const begun = lookUp((one) => one === undefined);
  // Whoever does not come to ask hears of the failure from what the transaction does next.
  begun.catch(() => {});
  return async (version) => {
    await begun;
    await lookUp((one) => one!.version !== version);
    return places.map((place) => found[place]!.numbers);
  };
}

function join(lists: readonly Digests[]): Digests {
  const all = createDigests(lists.reduce((sum, digests) => sum + countOf(digests), 0));
  let end = 0;
  for (const digests of lists) {
    all.set(digests, end);
    end += digests.length;
  }
  return all;
}
