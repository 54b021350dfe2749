/** A team whose jobs end with the exit code of a gate, and whose automations quarantine flaky tests and release them. */

import type { Database } from "../../../src/database/connect.ts";
import { createLog } from "../../../src/log.ts";
import { insertFlakinessEvents } from "../../../src/store/events.ts";
import { selectRunId } from "../../../src/store/test_runs.ts";
import { handleEvents } from "../../../src/work/automate.ts";
import { countAll } from "../../../src/work/count.ts";
import type { Build, Upload } from "./builds.ts";
import type { Ask } from "./play.ts";

type Servers = Pick<Database, "pool" | "begin">;

export type GatedBuild = {
  build: Build;
  /** The tests of each job passed in the end. */
  isGreenWithoutGate: boolean;
  /** Each job ended with 0: its tests passed, or its gate did. */
  isGreen: boolean;
  /** The decision about the whole build, which a protected branch may require. */
  verdict: { pass: boolean; reasons: string[] };
  /** The largest number of quarantined test cases since the build before. */
  quarantined: number;
};

export type Gate = {
  /** To be called after each report, with the answer to it. */
  record(upload: Upload, answer: GateAnswer): Promise<void>;
  builds: GatedBuild[];
};
type GateAnswer = { executionId: string; taskSlug: string; gate: { pass: boolean } };

const LOG = createLog("error");
/** Only messages contain it, and the automations send none. */
const PUBLIC_URL = "https://assay.example";

const AUTOMATIONS = [
  { name: "quarantine", trigger: { event: "test_case.became_flaky" }, actions: [{ type: "quarantine" }] },
  { name: "release", trigger: { event: "test_case.recovered" }, actions: [{ type: "release" }] },
];

/** `ask` concerns the project, `askTeam` everything below /teams/:teamId with the key of the team. */
export async function startGate(
  database: Servers,
  { project, ask, askTeam }: { project: string; ask: Ask; askTeam: Ask },
): Promise<Gate> {
  for (const automation of AUTOMATIONS)
    await askTeam("POST", "/automations", JSON.stringify({ ...automation, conditions: { projects: [project] } }));
  const act = createAutomations(database, project);
  const builds: GatedBuild[] = [];
  const jobs = new Map<Build, { isGreenWithoutGate: boolean; isGreen: boolean }[]>();
  let quarantined = 0;
  return {
    builds,
    async record({ build, failed, isLastOfTask, isLastOfBuild }, answer) {
      if (await act(answer)) {
        const { data } = await ask("GET", "/test-cases?quarantined=true&limit=100");
        quarantined = Math.max(quarantined, data.length);
      }
      if (!isLastOfTask) return;
      const isGreenWithoutGate = failed.size === 0;
      const own = [...(jobs.get(build) ?? []), { isGreenWithoutGate, isGreen: isGreenWithoutGate || answer.gate.pass }];
      jobs.set(build, own);
      if (!isLastOfBuild) return;
      builds.push({
        build,
        isGreenWithoutGate: own.every((job) => job.isGreenWithoutGate),
        isGreen: own.every((job) => job.isGreen),
        verdict: await ask("GET", `/executions/${answer.executionId}/verdict?gate=new`),
        quarantined,
      });
      const { data } = await ask("GET", "/test-cases?quarantined=true&limit=100");
      quarantined = data.length;
    },
  };
}

/**
 * Lets the automations act after a report, and answers whether a test became flaky or recovered. A server writes the event of
 * that only for reports of the last 24 hours. Those of a story are older, so the events are written here. Everything else is what
 * the server does: the automations, their actions and caps. No quarantine of 30 days ends within the three weeks of a story.
 */
function createAutomations({ pool, begin }: Servers, project: string) {
  let before = new Set<number>();
  const selectFlaky = async () => {
    const rows = await pool<{ testCase: number }[]>`
      select test_case as "testCase" from case_health where project_id = ${project} and flaky`;
    return new Set(rows.map(({ testCase }) => testCase));
  };
  const hasDueEvent = async () =>
    (await pool`select from event where project_id = ${project} and due_at is not null limit 1`).length > 0;

  return async ({ executionId, taskSlug }: GateAnswer): Promise<boolean> => {
    await countAll({ pool, begin }, undefined, LOG);
    const now = await selectFlaky();
    const toTurns = (cases: Set<number>, others: Set<number>, flaky: boolean) =>
      [...cases.difference(others)].map((testCase) => ({ testCase, flaky }));
    const turned = [...toTurns(now, before, true), ...toTurns(before, now, false)];
    before = now;
    if (turned.length === 0) return false;
    const runId = await selectRunId(pool, project, executionId, taskSlug);
    await begin((sql) => insertFlakinessEvents(sql, project, runId!, turned));
    // Another server may be handling the event at this moment.
    while (await hasDueEvent()) await handleEvents({ pool, begin }, PUBLIC_URL, LOG);
    return true;
  };
}
