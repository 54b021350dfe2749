/** Declares a page or a form of the dashboard: its path, who may come, and the function that makes it. */

import type { EnteredProject } from "../../store/projects.ts";
import type { BlockList } from "node:net";
import * as v from "valibot";
import type { EventStreams } from "../../http/events.ts";
import type { Html, Path } from "../../http/html.ts";
import type { Oidc } from "../../http/oidc.ts";
import type { Outbound } from "../../http/outbound.ts";
import type { Method, PathParameters } from "../../http/router.ts";
import type { Log } from "../../log.ts";
import type { SignIn } from "../../operations/people/accounts.ts";
import type { OidcPolicy } from "../../operations/people/oidc_accounts.ts";
import type { Reply } from "../../request/reply.ts";
import { slug, uuid } from "../../schema/fields.ts";
import type { Visitor, Visitors as Sessions } from "../../request/visitors.ts";
import type { Live } from "../../schema/live.ts";
import type { Role } from "../../schema/accounts.ts";
import type { Seal } from "../../secrets/seal.ts";
import type { Database, Sql } from "../../database/connect.ts";
import type { Signals } from "../../database/signals.ts";

/** How pages know who asks, and that a form is one of ours. */
export type VisitorServices = {
  find(cookies: string | null): Promise<Visitor | undefined>;
  /** For the hidden field of forms; `cookie`: to be set for who is not signed in. */
  csrf(request: Request, visitor: Visitor | undefined): { token: string; cookie?: string };
  /** Whether a POST with this token comes from a form that this visitor got from us. */
  isOwnForm(request: Request, visitor: Visitor | undefined, token: string): boolean;
};

/** Who may come: anybody, whoever is signed in, or who has at least this role in the team of the path. */
export type Access = "public" | "account" | Role;

/** The project of a path. */
export type ProjectPlace = Omit<EnteredProject, "openBugs">;

/** What all pages use. */
export type PageServices = Pick<Database, "begin"> & {
  sql: Sql;
  fast: Sql;
  log: Log;
  seal: Seal;
  outbound: Outbound;
  /** Private addresses that may be reached all the same. */
  outboundAllow: BlockList;
  signals: Pick<Signals, "watch" | "tell">;
  live: Pick<Live, "watch">;
  eventStreams: Pick<EventStreams, "refusal" | "open">;
  /** For those who sign in and out. */
  sessions: Pick<Sessions, "keep" | "forget" | "tokenOf">;
  /** How people sign in. */
  signIn: SignIn & {
    policy: OidcPolicy;
    /** Undefined: with passwords only. `host` is what the provider is called. */
    oidc: (Oidc & { host: string }) | undefined;
  };
  /** Without a trailing slash. */
  publicUrl: string;
  retentionDays: number;
};

export type PageContext<
  Params = Record<string, string>,
  Query = unknown,
  Fields = unknown,
  Who = Visitor,
> = PageServices & {
  params: Params;
  query: Query;
  /** Of a form. */
  fields: Fields;
  visitor: Who;
  /** Of the visitor in the team of the path. */
  role: Role | null;
  /** Of a path below /projects/:projectId. */
  project: EnteredProject | null;
  /** Of a path below /teams/:teamId or /projects/:projectId. */
  team: { id: string; name: string } | null;
  /** For hidden fields of forms. */
  csrf: string;
  /** The path as asked for. */
  path: Path;
  now: Date;
  request: Request;
  /** Whether the visitor may still see this page: asked again and again by what goes on. */
  mayStay: () => Promise<boolean>;
  /** Of the client. */
  address: () => string;
};

/** What a page shows. */
export type View = {
  title: string;
  body: Html;
  /** Which entry of the navigation it belongs to. */
  section?:
    | "overview"
    | "executions"
    | "tests"
    | "bugs"
    | "uploads"
    | "settings"
    | "team"
    | "members"
    | "environments"
    | "integrations"
    | "automations"
    | "runners"
    | "audit"
    | "account";
  /** Default 200. */
  status?: number;
  /** A page of one form. */
  isNarrow?: boolean;
  /** Where events tell that the page has news. */
  live?: string;
  /** For whoever has its address: without the rest of the dashboard around it, and for no search engine. */
  isShared?: boolean;
};

/** After a form: where to go on. `to` is a path of ours. */
export class SeeOther {
  readonly to: string;
  readonly headers: Record<string, string>;
  constructor(to: string, headers: Record<string, string> = {}) {
    this.to = to;
    this.headers = headers;
  }
}

type ObjectSchema = v.StrictObjectSchema<v.ObjectEntries, undefined>;
type Of<Schema> = Schema extends v.GenericSchema ? v.InferOutput<Schema> : Record<string, never>;
type Who<A extends Access> = A extends "public" ? Visitor | undefined : Visitor;
type InProject<Pattern extends string> = Pattern extends `${string}/projects/:projectId${string}`
  ? { project: EnteredProject; team: { id: string; name: string }; role: Role }
  : Pattern extends `${string}/teams/:teamId${string}`
    ? { team: { id: string; name: string }; role: Role }
    : unknown;

/** What the function of a page gets. */
export type PageOf<Pattern extends string, Q = undefined, F = undefined, A extends Access = "viewer"> = PageContext<
  PathParameters<Pattern>,
  Of<Q>,
  Of<F>,
  Who<A>
> &
  InProject<Pattern>;

export type Page = {
  method: Method;
  path: string;
  access: Access;
  pathParameters: ObjectSchema;
  query: ObjectSchema;
  fields: ObjectSchema | undefined;
  handle: (context: PageContext<never, never, never, never>) => Promise<View | SeeOther | Reply>;
};

const nothing = v.strictObject({});
const schemaOf = (path: string): ObjectSchema =>
  v.strictObject(
    Object.fromEntries(
      path
        .split("/")
        .filter((segment) => segment.startsWith(":"))
        .map((segment) => [segment.slice(1), segment.endsWith("Id") ? uuid : slug]),
    ),
  );

/** `GET /projects/:projectId/tests`; HEAD comes with it. */
export function page<const Pattern extends `/${string}`, Q extends ObjectSchema | undefined, const A extends Access>(
  path: Pattern,
  { access, query }: { access: A; query?: Q },
  handle: (context: PageOf<Pattern, Q, undefined, A>) => Promise<View | SeeOther | Reply>,
): Page {
  return {
    method: "GET",
    path,
    access,
    pathParameters: schemaOf(path),
    query: query ?? nothing,
    fields: undefined,
    handle: handle as unknown as Page["handle"],
  };
}

/** A POST of fields that changes something; its CSRF token has been checked. */
export function form<const Pattern extends `/${string}`, F extends ObjectSchema | undefined, const A extends Access>(
  path: Pattern,
  { access, fields }: { access: A; fields?: F },
  handle: (context: PageOf<Pattern, undefined, F, A>) => Promise<View | SeeOther | Reply>,
): Page {
  return {
    method: "POST",
    path,
    access,
    pathParameters: schemaOf(path),
    query: nothing,
    fields: fields ?? nothing,
    handle: handle as unknown as Page["handle"],
  };
}
