/** Searches for culprits that have ended, without the runners that would take minutes for them. */

import type { Database } from "../src/database/connect.ts";
import { cancelProbes, createProbes } from "../src/operations/probes/probes.ts";

type Ended = {
  project: string;
  bugReportId: string;
  /** What people call things; a hostile one makes something else of it. */
  naming?: (plain: string) => string;
};

const hash = (at: number) => Bun.SHA1.hash(`commit ${at}`, "hex");

/** The rounds of its probes: the number of the commit and the result. */
const PROBES = [[[2, "passed"]], [[4, "no_build"]], [[3, "failed"]], [[3, "failed"]], [[2, "passed"]]] as const;

/** Adds a search of the bug that has found its culprit, the third of five commits after the good one. */
export async function insertFoundSearch(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  { project, bugReportId, naming = (plain) => plain }: Ended,
): Promise<string> {
  const id = Bun.randomUUIDv7();
  const subjects = [
    "Add a cart",
    "Sort the vouchers",
    "Update the packages",
    "Round prices to cents",
    "Speed up",
    "Docs",
  ];
  const commits = subjects.map((subject, at) => ({
    ...{ hash: hash(at), author: naming(at % 2 === 0 ? "Grace" : "Ada"), date: "2026-01-31T10:00:00+01:00" },
    ...{ subject: naming(subject), files: [naming(`src/cart/${at}.ts`), naming("package.json")] },
  }));
  const summary = `${hash(3).slice(0, 10)} by ${naming("Ada")} broke it: it failed there 2 of 2 times, on its parent ${hash(2).slice(0, 10)} it passed 2 of 2 times`;
  const [test] = await pool<{ testCaseId: string; taskSlug: string }[]>`
    insert into culprit_search (project_id, id, bug_report_id, test_case, task_slug, good_commit, bad_commit, commits,
      max_probes, max_minutes, status, verdict, summary, suspects, culprit, created_at, ended_at)
    select ${project}, ${id}, ${bugReportId}, c.number, c.task_slug, ${hash(0)}, ${hash(5)},
      ${JSON.stringify(commits)}::text::json, 30, 60, 'completed', 'culprit', ${summary},
      '[{"index": 3, "chance": 0.997}]', 3, now() - interval '20 minutes', now()
    from bug_case k join test_case c on c.project_id = k.project_id and c.number = k.test_case
    where k.project_id = ${project} and k.bug_report_id = ${bugReportId} order by c.number limit 1
    returning (select id from test_case c where c.project_id = culprit_search.project_id and c.number = test_case) as "testCaseId",
      task_slug as "taskSlug"`;
  await begin(async (sql) => {
    const owner = { culpritSearchId: id };
    for (const [round, results] of PROBES.entries()) {
      const commits = results.map(([at]) => hash(at));
      const now = new Date(Date.now() - (PROBES.length - round) * 60_000);
      const ids = await createProbes(sql, project, { ...test!, commits, owner, now });
      await cancelProbes(sql, project, owner, "Only for the picture");
      for (const [at, [, result]] of results.entries())
        await sql`
          update probe set result = ${result}, fingerprint = case when ${result}::text = 'failed' then (
            select digest from bug_fingerprint where project_id = ${project} and bug_report_id = ${bugReportId} limit 1) end
          where project_id = ${project} and execution_id = ${ids[at]!}`;
    }
    // The search of another bug has shared a failed probe, if its task has another test case.
    await sql`
      insert into probe (project_id, execution_id, number, test_case, task_slug, commit, result, culprit_search_id, created_at, ended_at)
      select p.project_id, p.execution_id, 2, c.number, p.task_slug, p.commit, 'passed', ${Bun.randomUUIDv7()}, p.created_at, p.ended_at
      from probe p join test_case c on c.project_id = p.project_id and c.task_slug = p.task_slug and c.number <> p.test_case
      where p.project_id = ${project} and p.culprit_search_id = ${id} and p.result = 'failed'
      order by p.execution_id, c.number limit 1`;
  });
  return id;
}
