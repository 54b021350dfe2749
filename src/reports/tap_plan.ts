/** Compares the plans of TAP with its points. */

import type { TapPoint } from "./tap_point.ts";
import { clean, cut, plural } from "./text.ts";

/** Points of one indentation; they belong to the point that opened a block, or else to the next one further out. */
export type TapLevel = { indent: number; points: TapPoint[]; owned: boolean; subtest: string; plans: number[] };

export const PLAN_MISMATCH = "(plan mismatch)";

/** Describes how the plans of a level contradict its points; null if they agree. The outermost level must have a plan. */
export function toPlanMismatch({ plans, points, indent }: TapLevel, isCounted = false): string | null {
  const ran = points.length;
  if (plans.length === 0)
    return indent > 0 ? null : `There is no plan, after ${plural(ran, "test")}: the run broke off`;
  const plan = plans.reduce((sum, one) => sum + one, 0);
  if (plan !== ran) return `The plan is of ${plural(plan, "test")}, but there ${ran === 1 ? "is" : "are"} ${ran}`;
  return isCounted ? null : toRepetition(plans, points);
}

/** A warning for points whose numbers the plan does not have, although their count is right. */
export function numberWarnings({ plans, points }: TapLevel): string[] {
  const plan = plans.reduce((sum, one) => sum + one, 0);
  const highest = points.reduce((most, { number }) => Math.max(most, number), 0);
  return plans.length > 0 && points.length === plan && highest > plan
    ? [`The plan is of ${plural(plan, "test")}, but one has the number ${highest}`]
    : [];
}

/** Whether the text ends with the right totals. mocha gives the failure of a hook the number of a test. */
export function isCounted(text: string, points: TapPoint[]): boolean {
  const [, passed, failed] = /^# pass (\d{1,9})\n# fail (\d{1,9})$/m.exec(text.slice(-1_000)) ?? [];
  const plain = points.filter(({ directive }) => directive === null);
  const failures = plain.filter(({ ok }) => !ok).length;
  return failures === Number(failed) && plain.length - failures === Number(passed);
}

/** Joined files begin at 1 again, each with its plan; a report that does not number all tests is not checked. */
function toRepetition(plans: number[], points: TapPoint[]): string | null {
  const counts = new Map<number, number>();
  for (const { number } of points) {
    if (number === 0) return null;
    counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  const longest = plans.reduce((most, plan) => Math.max(most, plan), 0);
  // The number of plans that include each number.
  const wanted = new Uint32Array(longest + 2);
  for (const plan of plans) wanted[plan]!++;
  for (let number = longest; number > 0; number--) wanted[number]! += wanted[number + 1]!;
  const repeated = [...counts].find(([number, count]) => count > Math.max(1, wanted[number] ?? 0));
  if (!repeated) return null;
  for (let number = 1; number <= longest; number++) {
    if ((counts.get(number) ?? 0) < wanted[number]!)
      return `The number ${repeated[0]} is there ${repeated[1]} times, and ${number} is missing`;
  }
  return null;
}

/** Describes why the text ends inside a subtest (a plan that is not fulfilled, or a block that is not closed); null if it does not. */
export function toBreak(levels: TapLevel[], endsInBrace: boolean): string | null {
  const inner = levels.slice(1);
  const opener = levels.at(-1)!.points.at(-1);
  // A level is announced in the one around it, by Perl of old in itself.
  const path = inner.map(({ owned, subtest }, at) =>
    owned ? levels[at]!.points.at(-1)!.name : clean(levels[at]!.subtest || subtest),
  );
  const where = `inside the subtest "${cut([...path, ...(endsInBrace ? [opener?.name ?? ""] : [])].join(" > "), 200)}"`;
  if (endsInBrace && opener?.opens) return `The run broke off ${where}`;
  for (const level of inner) {
    const mismatch = toPlanMismatch(level);
    if (mismatch !== null) return `The run broke off ${where}: ${mismatch.charAt(0).toLowerCase()}${mismatch.slice(1)}`;
    if (level.owned || level.plans.length === 0) return `The run broke off ${where}`;
  }
  return null;
}
