/** A list of what the owners of a team create: automations, environments or integrations. */

import type { Html, Path, Piece } from "../../http/html.ts";
import type { Role } from "../../schema/accounts.ts";
import { counted } from "../../wording/numbers.ts";
import { Empty } from "./empty.tsx";
import { type PagedRows, Pager } from "./pager.tsx";

type TeamListProperties = {
  path: Path;
  /** In the plural, with a capital letter. */
  title: string;
  /** In the singular. */
  noun: string;
  description: string;
  /** Suggests to owners what to create first. */
  suggestion: string;
  /** Whether a page of its own creates one. */
  hasNewPage: boolean;
  role: Role;
  list: PagedRows<unknown>;
  cursor: string | undefined;
  /** The table of the rows. */
  children?: Piece;
};

export function TeamList(properties: TeamListProperties): Html {
  const { path, title, noun, description, suggestion, hasNewPage, role, list, cursor, children } = properties;
  const { rows, next } = list;
  return (
    <>
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
