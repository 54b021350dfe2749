/** Forms that change something: reads the fields, makes the change, then leads to a page or shows the form again. */

import type { Tx } from "../../database/connect.ts";
import { Problem } from "../../http/problem.ts";
import type { PathParameters } from "../../http/router.ts";
import { actInTeam } from "../../operations/people/audit.ts";
import type { Reply } from "../../request/reply.ts";
import type { Role } from "../../schema/accounts.ts";
import type { Actor, NewAuditEntry } from "../../schema/audit.ts";
import { Refusal } from "../../schema/refusal.ts";
import {
  type Access,
  form,
  type ObjectSchema,
  type Page,
  type PageContext,
  type PageOf,
  SeeOther,
  type View,
} from "./page.ts";

type WriteContext = Pick<PageContext, "begin" | "visitor"> & { team: { id: string } };

/**
 * Runs the operation in a transaction in which the visitor's session and role are locked, so that both stay valid until the
 * commit. Writes the audit log in the same transaction. `record` returns its entry; undefined if nothing was changed, or if the
 * operation has recorded the change as `actor`. Throws a Refusal if the session or the role has ended since the form was
 * opened; then nothing is changed.
 */
export const write = <T>(
  { begin, visitor, team }: WriteContext,
  role: Role,
  operation: (sql: Tx, actor: Actor) => Promise<T>,
  record: (result: T) => NewAuditEntry | undefined = () => undefined,
): Promise<T> =>
  actInTeam({ begin }, visitor, { teamId: team.id, needed: role }, async (sql, insertEntry, actor) => {
    const result = await operation(sql, actor);
    const entry = record(result);
    if (entry) await insertEntry(entry);
    return result;
  });

/** Runs `work` and returns the message if the input is refused, so that the form can be shown again with it. Other errors are thrown. */
export async function tryForm<T>(work: () => Promise<T>): Promise<{ result: T } | { problem: string }> {
  try {
    return { result: await work() };
  } catch (error) {
    const isMistake =
      error instanceof Refusal ? error.kind === "invalid" : error instanceof Problem && error.status === 400;
    if (!isMistake) throw error;
    return { problem: (error as Error).message };
  }
}

type Steps<Context, Input, Result> = {
  /** Answers a button of the form that changes nothing. Returns undefined for the other buttons. */
  preview?: (context: Context) => Next | Promise<Next> | undefined;
  /** Validates the fields, before anything is locked. */
  read?: (context: Context) => Input;
  /** Makes the change, as `write` describes. */
  act?: (sql: Tx, context: Context, input: Input, actor: Actor) => Promise<Result>;
  /** Instead of `act`: makes a change that has transactions of its own. */
  run?: (context: Context, input: Input) => Promise<Result>;
  /** Returns the entry of the audit log. */
  record?: (result: Result, context: Context, input: Input) => NewAuditEntry | undefined;
  /** Shows the form again with the reason why it was refused. Without it, the reason is shown on a page of its own. */
  refused?: (context: Context, problem: string) => View | Promise<View>;
  /** Returns the path to continue at, or a page. */
  done: (context: Context, result: Result, input: Input) => Next | Promise<Next>;
};

type Next = string | SeeOther | View;

/** Declares a form by its steps. */
export const action = <
  const Pattern extends `/${string}`,
  const A extends Access,
  Result,
  Input = undefined,
  F extends ObjectSchema | undefined = undefined,
>(
  path: Pattern,
  options: { access: A; fields?: F },
  { preview, read, act, run, record, refused, done }: Steps<PageOf<Pattern, undefined, F, A>, Input, Result>,
): Page =>
  form(path, options, async (context): Promise<View | SeeOther | Reply> => {
    const work = async () => {
      const shown = await preview?.(context);
      if (shown !== undefined) return { shown };
      const input = read?.(context) as Input;
      const result = act
        ? await write(
            context as unknown as WriteContext,
            options.access as Role,
            (sql, actor) => act(sql, context, input, actor),
            (result) => record?.(result, context, input),
          )
        : await run!(context, input);
      return { result, input };
    };
    const made = refused ? await tryForm(work) : { result: await work() };
    if ("problem" in made) return await refused!(context, made.problem);
    const { result } = made;
    // The change is committed: an error from here on is not about the form.
    const next = "shown" in result ? result.shown : await done(context, result.result, result.input);
    return typeof next === "string" ? new SeeOther(next) : next;
  });

type TeamNoun = "automation" | "environment" | "infrastructure_rule" | "integration";

/** The form that deletes what one page of a team is about. `remove` returns its name. */
export const deletion = <const Pattern extends `/teams/:teamId/${string}`>(
  path: Pattern,
  noun: TeamNoun,
  remove: (sql: Tx, params: PathParameters<Pattern>) => Promise<string>,
): Page =>
  action(
    `${path as `/teams/:teamId/${string}`}/delete`,
    { access: "owner" },
    {
      act: (sql, { params }) => remove(sql, params as unknown as PathParameters<Pattern>),
      record: (subject, { params }) => {
        const { teamId: _, ...details } = params as Record<string, string>;
        return { action: `${noun}.deleted`, subject, details };
      },
      done: (context) => `${context.path.split("/").slice(0, 4).join("/")}?notice=deleted`,
    },
  );

/** Splits a list at line breaks or commas, and drops blanks and empty items. */
export const splitList = (text: string | undefined): string[] =>
  (text ?? "")
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** Browsers send the line breaks of a text area as CR LF. */
export const toLines = (text: string): string => text.replaceAll("\r\n", "\n");
