/** The parts of a list: its table, its pages, and what it shows if it has no rows. */

import type { Html, Path, Piece } from "../../http/html.ts";
import type { Role } from "../../schema/accounts.ts";
import { counted } from "../../wording/numbers.ts";
import { toAddress } from "../site/paths.ts";
import { Notice } from "./form.tsx";
import { Mark } from "./status.tsx";
import { Ago } from "./text.tsx";

/** `hidden`: the title is for screen readers only; `wide`: the column is left out on small screens. */
type Trait = "number" | "wide" | "hidden";
/** A column that is false is left out. */
export type Column = string | readonly [title: Piece, ...traits: Trait[]] | false;

/** The columns that each table of tasks begins with. */
export const TASK_COLUMNS: readonly Column[] = [
  ["Status", "hidden"],
  "Task",
  ["Passed", "number"],
  ["Failed", "number"],
  ["Skipped", "number", "wide"],
  ["Duration", "number"],
];

function HeadCell({ title, traits }: { title: Piece; traits: readonly Trait[] }): Html {
  const classes = traits.filter((trait) => trait !== "hidden");
  return (
    <th scope="col" class={classes.join(" ")}>
      {traits.includes("hidden") ? <span class="visually-hidden">{title}</span> : title}
    </th>
  );
}

type HeadProperties = {
  /** The caption for screen readers. */
  caption?: Piece;
  /** A table without columns has no header row. */
  columns?: readonly Column[] | undefined;
  /** Whether the header row is for screen readers only. */
  hidesHead?: boolean;
};

export const TableHead = ({ caption, columns, hidesHead = false }: HeadProperties): Html => (
  <>
    {caption === undefined ? null : <caption class="visually-hidden">{caption}</caption>}
    {columns && (
      <thead class={hidesHead ? "visually-hidden" : undefined}>
        <tr>
          {columns.map((column) => {
            if (!column) return null;
            const [title, ...traits] = typeof column === "string" ? [column] : column;
            return <HeadCell title={title} traits={traits} />;
          })}
        </tr>
      </thead>
    )}
  </>
);

type TableProperties = HeadProperties & {
  /** The class of the table. */
  kind?: string;
  /** Whether the table scrolls sideways if the screen is too narrow. */
  scrolls?: boolean;
  /** The rows. */
  children?: Piece;
};

/** A table on a card. */
export const CardTable = ({ kind, scrolls = false, children, ...head }: TableProperties): Html => (
  <div class={scrolls ? "card scroll" : "card"}>
    <table class={kind}>
      <TableHead {...head} />
      <tbody>{children}</tbody>
    </table>
  </div>
);

export const MarkCell = (mark: Parameters<typeof Mark>[0]): Html => (
  <td class="mark-cell">
    <Mark {...mark} />
  </td>
);

/** `at`: null is shown as `never`. */
export const AgoCell = ({ at, now, kind = "number soft", never = "never" }: AgoProperties): Html => (
  <td class={kind}>{at === null ? never : <Ago at={at} now={now} />}</td>
);
type AgoProperties = { at: string | null; now: Date; kind?: string; never?: string };

/** Says why a list is empty. `action` is a link or a sentence about what a reader may want to do instead. */
export const Empty = ({ action, children }: { action?: Piece; children?: Piece }): Html => (
  <div class="card empty">
    <p>{children}</p>
    {action === undefined ? null : <p>{action}</p>}
  </div>
);

export const FirstReportLink = ({ projectId }: { projectId: string }): Html => (
  <a class="button main" href={`/projects/${projectId}/onboarding`}>
    Send the first report
  </a>
);

/** A page of a list. `next` is the cursor of the next page. */
export type PagedRows<Row> = { rows: readonly Row[]; next: string | undefined };

/** Expects one row more than `limit` if there is a next page. */
export function toPagedRows<Row>(found: readonly Row[], limit: number, cursorOf: (row: Row) => string): PagedRows<Row> {
  const rows = found.slice(0, limit);
  return { rows, next: found.length > limit ? cursorOf(rows.at(-1)!) : undefined };
}

type Pages = { path: Path; query: Record<string, string | undefined>; cursor: string | undefined };

/** Links to the first and the next page. The filters stay in the address. */
export function Pager({ path, query, cursor }: Pages): Html | null {
  const isFirst = query["cursor"] === undefined;
  if (isFirst && cursor === undefined) return null;
  return (
    <nav class="pages" aria-label="Pages">
      {isFirst ? null : <a href={toAddress(path, { ...query, cursor: undefined })}>First page</a>}
      {cursor === undefined ? null : (
        <a rel="next" href={toAddress(path, { ...query, cursor })}>
          Next
        </a>
      )}
    </nav>
  );
}

type TeamListProperties = {
  path: Path;
  /** The plural with a capital letter. */
  title: string;
  /** The singular. */
  noun: string;
  description: string;
  /** Suggests to owners what to create first. */
  suggestion: string;
  notices: Readonly<Record<string, string>>;
  /** Whether a page of its own creates one. */
  hasNewPage?: boolean;
  role: Role;
  list: PagedRows<unknown>;
  query: { cursor?: string | undefined; notice?: string | undefined };
  /** The table of the rows. */
  children?: Piece;
};

/** A list of what the owners of a team create: automations, environments, integrations or infrastructure rules. */
export function TeamList(properties: TeamListProperties): Html {
  const { path, title, noun, description, suggestion, hasNewPage, role, children } = properties;
  const { rows, next } = properties.list;
  const { cursor, notice } = properties.query;
  return (
    <>
      <Notice notices={properties.notices} name={notice} />
      <h1>{title}</h1>
      <p class="meta">
        <span>{description}</span>
      </p>
      {hasNewPage && role === "owner" ? (
        <p class="actions">
          <a class="button main" href={`${path}/new`}>
            New {noun}
          </a>
        </p>
      ) : null}
      <h2>
        {counted(rows.length, noun)}
        {next === undefined ? "" : " on this page"}
      </h2>
      {rows.length === 0 ? (
        <Empty action={role === "owner" ? suggestion : "Owners of the team create them."}>
          No {title.toLowerCase()} yet.
        </Empty>
      ) : (
        children
      )}
      <Pager path={path} query={{ cursor }} cursor={next} />
    </>
  );
}
