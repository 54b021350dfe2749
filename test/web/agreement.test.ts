/** Pages, the API and badges say the same numbers, whatever has happened. `AGREEMENT_SEEDS=200` tries more histories. */

import { expect, test } from "bun:test";
import { isFull } from "../depth.ts";
import { createPages } from "./browser.ts";
import { toWords } from "../browser.ts";
import { createHistory } from "./history.ts";

const ASKED = process.env["AGREEMENT_SEEDS"];
const SEEDS = Number(ASKED ?? 4);
const FIRST = Number(process.env["AGREEMENT_FIRST_SEED"] ?? 1);
const STEPS = 24;

const pages = await createPages();
const look = (path: string) => pages.look("member", path);

type Project = Awaited<ReturnType<typeof pages.createProject>>;

const plural = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;

/** Collects what two places say of one thing, where it is not the same. */
function createComparison() {
  const differences: string[] = [];
  let compared = 0;
  return {
    differences,
    compared: () => compared,
    same(what: string, said: unknown, expected: unknown): void {
      compared++;
      if (!Bun.deepEquals(said, expected))
        differences.push(`${what}: ${JSON.stringify(said)}, and elsewhere ${JSON.stringify(expected)}`);
    },
  };
}
type Comparison = ReturnType<typeof createComparison>;

/** What the row of a task says in the table of its execution: passed, failed, skipped. */
function taskRow(html: string, slug: string): number[] | undefined {
  const row = html.split("<tr").find((one) => one.includes(`/tasks/${slug}"`) && one.includes('class="number'));
  if (row === undefined) return undefined;
  const cells = [...row.matchAll(/<td class="number[^"]*">([^]*?)<\/td>/g)].slice(0, 3);
  return cells.map(([, text]) => Number(text!.replace(/<[^>]*>/g, "")));
}

async function compareExecution({ path, get: read }: Project, id: string, { same }: Comparison): Promise<any> {
  const execution = await read(`/executions/${id}`);
  const name = `execution ${execution.key ?? id} (${execution.status})`;
  for (const field of ["passed", "failed", "skipped"] as const)
    same(
      `${name}, ${field} of its tasks`,
      execution.tasks.reduce((sum: number, task: any) => sum + (task[field] ?? 0), 0),
      execution[field],
    );
  const comparison = await read(`/executions/${id}/comparison`);
  const lists = Object.keys(comparison).filter((name) => /fail/i.test(name) && name !== "incidentFailures");
  const blamed = lists.reduce((sum, list) => sum + comparison[list].length, 0);
  const runs = new Map<string, any>();
  for (const { slug, attempt } of execution.tasks)
    if (attempt > 0) runs.set(slug, await read(`/executions/${id}/test-runs/${slug}`));
  const failures = await read(`/executions/${id}/failures`);
  const told = failures.causes.reduce((sum: number, { failed }: any) => sum + failed, 0);
  same(`${name}, failures of its causes`, told, execution.failed);
  const { words, html } = await look(`${path}/executions/${id}`);
  const fresh = comparison.newFailures.length;
  const ended = !["queued", "running", "cancelled"].includes(execution.status);
  const outages = [...runs.values()].filter(({ outage }) => outage);
  const down = outages.reduce((sum, { failed }) => sum + failed, 0);
  if (ended && outages.length > 0 && execution.status === "failed")
    same(`${name}, its outage`, Number(/An outage(?: of [^:]*)?: (\d+) of/.exec(words)?.[1]), down);
  if (ended && execution.status === "failed") {
    same(`${name}, all failures but those of outages are blamed`, blamed, execution.failed - down);
    same(`${name}, new failures of its page`, Number(/(\d+) new failures?/.exec(words)?.[1] ?? 0), fresh);
  }
  if (ended && execution.passed > 0 && execution.status === "passed")
    same(`${name}, passed on its page`, Number(/(\d+) passed/.exec(words)?.[1]), execution.passed);
  if (execution.skipped > 0 && !/All tests were skipped/.test(words))
    same(`${name}, skipped on its page`, Number(/(\d+) skipped/.exec(words)?.[1]), execution.skipped);
  let flaky = 0;
  for (const task of execution.tasks) {
    if (task.attempt === 0) continue;
    const counts = [task.passed, task.failed, task.skipped];
    same(`${name}, ${task.slug} in its table`, taskRow(html, task.slug), counts);
    const run = runs.get(task.slug);
    same(`${name}, ${task.slug} by itself`, [run.passed, run.failed, run.skipped], counts);
    flaky += run.flaky;
    const page = (await look(`${path}/executions/${id}/tasks/${task.slug}`)).words;
    const said = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(page)?.[1] ?? 0);
    if (!run.outage)
      same(`${name}, ${task.slug} on its page`, [said("passed"), said("failed")], [task.passed, task.failed]);
  }
  same(`${name}, flaky of its runs`, flaky, execution.flaky);
  const freshOf = (slug: string): number =>
    comparison.newFailures.filter(({ taskSlug }: any) => taskSlug === slug).length;
  return { execution, fresh, freshOf, name };
}

async function compareTests({ path, list }: Project, { same }: Comparison): Promise<void> {
  for (const one of await list("/test-cases?limit=100")) {
    const { words } = await look(`${path}/tests/${one.id}`);
    const [, failed = "0", of = "0"] = /failed in (\d+) of (\d+) results?/.exec(words) ?? [];
    same(`test ${one.taskSlug} ${one.name}`, [Number(failed), Number(of)], [one.failures, one.runs]);
    const results = await list(`/test-cases/${one.id}/results?limit=50`);
    const tally = /The last (\d+) results? on all branches: ([^;]*); newest right/.exec(words);
    const said = Object.fromEntries((tally?.[2] ?? "").split(", ").map((part) => part.split(" ").toReversed()));
    const number = (shown: string) => Number(said[shown] ?? said[`${shown}s`] ?? 0);
    const count = (is: (row: any) => boolean) => String(results.filter(is).length);
    same(
      `results of ${one.taskSlug} ${one.name}`,
      ["passed", "flaky", "failed", "skipped", "outage"].map(number).map(String),
      [
        count(({ status, flaky, outage }) => status === "passed" && !flaky && !outage),
        count(({ flaky, outage }) => flaky && !outage),
        count(({ status, outage }) => status === "failed" && !outage),
        count(({ status, outage }) => status === "skipped" && !outage),
        count(({ outage }) => outage),
      ],
    );
  }
}

async function compareBugs({ path, list }: Project, { same }: Comparison): Promise<void> {
  const bugs = await list("/bug-reports?limit=100");
  const listed = (await look(`${path}/bugs`)).words;
  const open = bugs.filter(({ status }) => status === "open" || status === "in_progress");
  const { words } = await look(path);
  same("open bugs", /(\d+) open bugs?/.exec(words)?.[1] ?? "0", String(open.length));
  for (const bug of bugs) {
    const page = (await look(`${path}/bugs/${bug.id}`)).words;
    same(
      `bug ${bug.number} on its page`,
      new RegExp(`(?<!\\d)${plural(bug.occurrences, "failure")}\\b`).test(page),
      true,
    );
    if (open.includes(bug)) same(`bug ${bug.number} in the list`, listed.includes(bug.title.slice(0, 40)), true);
  }
}

type Compared = Awaited<ReturnType<typeof compareExecution>>;

/** By what the API says of executions: branches with new failures in tasks that they have not run again since, newest first. */
function needed(executions: readonly Compared[]): string[] {
  const byId = new Map(executions.map(({ execution }) => [execution.id as string, execution]));
  const buildOf = (execution: any): string | undefined => {
    if (execution.rerunOf === null) return execution.id;
    const repeated = byId.get(execution.rerunOf);
    return repeated && buildOf(repeated);
  };
  const all = executions.flatMap((one) => {
    const build = buildOf(one.execution);
    return build === undefined ? [] : [{ ...one, place: `${build} ${one.execution.id}` }];
  });
  return all.flatMap(({ execution, freshOf, place }) => {
    if (execution.branch === "main" || !["failed", "timed_out", "running"].includes(execution.status)) return [];
    const number = execution.tasks
      .filter(
        ({ slug }: any) =>
          !all.some(
            (later) =>
              later.execution.branch === execution.branch &&
              later.place > place &&
              later.execution.tasks.some(
                (task: any) => task.slug === slug && ["passed", "failed"].includes(task.status),
              ),
          ),
      )
      .reduce((sum: number, { slug }: any) => sum + freshOf(slug), 0);
    return number === 0 ? [] : [`${execution.branch} ${number}`];
  });
}

async function compareState({ path, get }: Project, executions: readonly Compared[], { same }: Comparison) {
  const state = await get("/state");
  const colour = { passed: "green", failed: "red" }[state.state as string];
  const home = (await look("/")).html;
  const row = new RegExp(`<tr>(?:(?!</tr>)[^])*${path}"[^]*?</tr>`).exec(home)?.[0] ?? "";
  const { words, html } = await look(path);
  const headline = colour ? `main has been ${colour}` : "No finished executions on main yet";
  same("the state on the project's page", words.includes(headline), true);
  same("the state on the first page", row.includes(colour ? `${colour} for ` : "no results"), true);
  const red = state.tasks.filter(({ status }: any) => status !== "passed");
  const WORDS: Record<string, string> = {
    failed: "failed",
    incomplete: "is incomplete",
    timed_out: "has not reported",
  };
  for (const { slug, status, failed } of red.slice(0, 5)) {
    const outcome = status === "failed" && failed > 0 ? plural(failed, "failure") : WORDS[status];
    same(`red ${slug}`, words.includes(`${slug}: ${outcome} red for `), true);
  }
  for (const { slug, status, passed, failed, lastExecutionId } of state.tasks) {
    const found = executions.find(({ execution }) => execution.id === lastExecutionId);
    const task = found?.execution.tasks.find((one: any) => one.slug === slug);
    same(`state of ${slug}`, [task?.status, task?.passed, task?.failed], [status, passed, failed]);
  }
  // What follows the number tells it from the outcome of the newest execution.
  const told = [...html.matchAll(/<code>(feature\/\w)<\/code>((?:(?!<\/tr>)[^])*)/g)].flatMap(([, branch, row]) =>
    [...row!.matchAll(/: (\d+) new failures?<span/g)].map(([, number]) => `${branch} ${number}`),
  );
  same("what needs somebody", told.toSorted(), needed(executions).slice(0, 5).toSorted());
  const onHome = [...toWords(row).matchAll(/ (feature\/\w)(?: \S+)? (\d+) new failures?/g)].map(
    ([, branch, number]) => `${branch} ${number}`,
  );
  same("what needs somebody, on the first page", onHome, needed(executions).slice(0, 3));
  const rows = (await look(`${path}/executions`)).words;
  for (const { execution, fresh, name } of executions) {
    if (execution.key === null || execution.status !== "failed" || execution.failed === 0) continue;
    const row = new RegExp(` ${execution.key} ${execution.branch} \\S+ (.*?)(?:✕|●|◐|–|$)`).exec(rows)?.[1];
    // Further down than the first page of them.
    if (row === undefined && executions.length > 25) continue;
    same(`${name} in the list`, Number(/(\d+) new failures?/.exec(row ?? "no row: 999 new failures")?.[1] ?? 0), fresh);
  }
  const made = await pages.fill("member", `${path}/badges`, { shows: "tests", branch: "" });
  const badge = /\/badge\/[0-9a-z]+\.svg/.exec(made.html)![0];
  const shown = (await pages.look("nobody", badge)).html;
  const sum = (field: string) => state.tasks.reduce((total: number, task: any) => total + task[field], 0);
  if (state.state !== null) same("the badge", shown.includes(`main: ${state.state}`), true);
  if (sum("failed") > 0)
    same(
      "the badge's numbers",
      new RegExp(`(?<!\\d)${sum("failed")} failed, ${sum("passed")} passed`).test(shown),
      true,
    );
}

test.skipIf(!isFull && ASKED === undefined).each(Array.from({ length: SEEDS }, (_, index) => FIRST + index))(
  "every number is the same wherever it is told, in history %i",
  async (seed) => {
    const own = await pages.createProject();
    await createHistory(own, pages.database, { seed, steps: STEPS });
    const comparison = createComparison();
    const executions: Compared[] = [];
    for (const { id } of await own.list("/executions?limit=100"))
      executions.push(await compareExecution(own, id, comparison));
    await compareState(own, executions, comparison);
    await compareTests(own, comparison);
    await compareBugs(own, comparison);
    // The first page shows so many projects and no more.
    await pages.database.pool`delete from project where id = ${own.project}`;
    expect(comparison.differences).toEqual([]);
    expect(comparison.compared()).toBeGreaterThan(100);
  },
  60_000,
);
