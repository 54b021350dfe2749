/** The failures of an execution by cause, in sections by blame. */

import type { Path, Piece } from "../../../http/html.ts";
import type { CauseFailures } from "../../../operations/executions/failures.ts";
import type { Blame } from "../../../schema/failures.ts";
import { sumTasks } from "../../../rules/execution.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { executionPath, toAddress } from "../../site/paths.ts";
import { type CauseContext, SECTIONS, blameOf, causeItem } from "./cause_item.tsx";
import type { ExecutionView } from "./meta.tsx";
import { type Background, type Failures, keyOf } from "./read_failures.ts";

type Section = { kind: string; causes: CauseFailures[] };

export function failureSections(
  failures: Failures,
  { counts, execution }: ExecutionView,
  background: Background,
  context: CauseContext,
  query: { cause_after?: string | undefined },
): Piece[] {
  const { causes, totals, evidence, filesOf, next } = failures;
  const failed = sumTasks(execution.tasks, "failed");
  if (causes.length === 0) return [];
  const sections = causes.reduce<Section[]>((all, cause) => {
    const kind = blameOf(cause.failures[0]);
    const last = all.at(-1);
    if (last?.kind === kind) last.causes.push(cause);
    else all.push({ kind, causes: [cause] });
    return all;
  }, []);
  let index = 0;
  const path: Path = executionPath(context.projectId, context.executionId);
  const all = Object.values(totals).reduce((sum, number) => sum + number, 0);
  const judged = Object.values(counts).reduce((sum, number) => sum + number, 0);
  return [
    sections.map(({ kind, causes }) => {
      const { title, hint } = SECTIONS[kind]!;
      const tests = kind === "none" ? failed - judged : (counts[kind as Blame] ?? 0);
      const total = totals[kind as Blame | "none"] ?? causes.length;
      const part = total > causes.length ? `${toCount(causes.length)} of ` : "";
      return (
        <>
          <h2>
            {title(context.defaultBranch)}{" "}
            <small>
              {part}
              {counted(total, "cause")}, {counted(tests, "test")} · {hint}
            </small>
          </h2>
          <div class="card">
            {causes.map((cause) => {
              const [first] = cause.failures;
              return causeItem(cause, index++, context, {
                evidence: evidence.get(keyOf(first)),
                files: filesOf(first),
                pass: background.passes.get(keyOf(first)),
                commits: background.commitsOf(first),
              });
            })}
          </div>
        </>
      );
    }),
    next || query.cause_after ? (
      <nav class="pages" aria-label="Pages of failures">
        {query.cause_after ? <a href={path}>First page</a> : null}
        {next ? (
          <a rel="next" href={toAddress(path, { cause_after: next })}>
            Next page
          </a>
        ) : null}
        <span class="hint">
          {toCount(causes.length)} of {counted(all, "cause")} on this page
        </span>
      </nav>
    ) : null,
  ];
}
