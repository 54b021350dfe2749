/** Declares a page or a form of the dashboard: its path, its access level and its function. */

import type { Cursors } from "../../http/cursor.ts";
import type { EnteredProject } from "../../store/projects.ts";
import type { BlockList } from "node:net";
import * as v from "valibot";
import type { AttachmentServices } from "../../attachments/store.ts";
import type { EventStreams } from "../../http/events.ts";
import type { Html, Path } from "../../http/html.ts";
import type { Oidc } from "../../http/oidc.ts";
import type { Outbound } from "../../http/outbound.ts";
import type { Method, PathParameters } from "../../http/router.ts";
import type { Log } from "../../log.ts";
import type { SignIn } from "../../operations/people/accounts.ts";
import type { OidcPolicy } from "../../operations/people/oidc_accounts.ts";
import type { ExportRequest } from "../../request/project_export.ts";
import type { Reply } from "../../request/reply.ts";
import { slug, uuid } from "../../schema/fields.ts";
import type { Visitor, Visitors as Sessions } from "../../request/visitors.ts";
import type { Live } from "../../schema/live.ts";
import type { Role } from "../../schema/accounts.ts";
import type { Seal } from "../../secrets/seal.ts";
import type { Database, Sql } from "../../database/connect.ts";
import type { Signals } from "../../database/signals.ts";

/** Authenticates visitors and verifies CSRF tokens. */
export type VisitorServices = {
  find(cookies: string | null): Promise<Visitor | undefined>;
  /** Returns the token for the hidden field of forms. `cookie`: to be set for visitors who are not signed in. */
  csrf(request: Request, visitor: Visitor | undefined): { token: string; cookie?: string };
  /** Whether a POST with this token comes from a form that this visitor received from us. */
  isOwnForm(request: Request, visitor: Visitor | undefined, token: string): boolean;
};

/** The visitors who may see a page: anyone, anyone who is signed in, or members of the path's team with at least this role. */
export type Access = "public" | "account" | Role;

/** The project in the path. */
export type ProjectRef = Omit<EnteredProject, "openBugs">;

/** The services that all pages use. */
export type PageServices = Pick<Database, "begin"> & {
  sql: Sql;
  fast: Sql;
  log: Log;
  seal: Seal;
  outbound: Outbound;
  /** Private addresses that may be reached in spite of the outbound policy. */
  outboundAllow: BlockList;
  signals: Pick<Signals, "watch" | "tell">;
  live: Pick<Live, "watch">;
  eventStreams: Pick<EventStreams, "refusal" | "open">;
  /** The services of pages that sign visitors in and out. */
  sessions: Pick<Sessions, "keep" | "forget" | "tokenOf">;
  /** How visitors sign in. */
  signIn: SignIn & {
    policy: OidcPolicy;
    /** The identity provider. Undefined: passwords only. `host` is the displayed name of the provider. */
    oidc: (Oidc & { host: string }) | undefined;
  };
  /** Without a trailing slash. */
  publicUrl: string;
  attachments: Pick<AttachmentServices, "store">;
  retentionDays: number;
  /** Answers with the data of a project as a stream. Fails where too many exports run already. */
  exportProject: (request: ExportRequest) => Promise<Reply>;
};

export type PageContext<
  Params = Record<string, string>,
  Query = unknown,
  Fields = unknown,
  PageVisitor = Visitor,
> = PageServices & {
  params: Params;
  query: Query;
  /** The fields of the form. */
  fields: Fields;
  visitor: PageVisitor;
  /** The role of the visitor in the team of the path. */
  role: Role | null;
  /** The project of a path below /projects/:projectId. */
  project: EnteredProject | null;
  /** The team of a path below /teams/:teamId or /projects/:projectId. */
  team: { id: string; name: string } | null;
  /** The CSRF token for hidden fields of forms. */
  csrf: string;
  /** The requested path. */
  path: Path;
  now: Date;
  /** Signs and reads the cursors of lists, as the API does. A list is named by its path and its order. */
  cursors: Cursors;
  request: Request;
  /** Whether the visitor may still see this page. Streams call it repeatedly. */
  mayStay: () => Promise<boolean>;
  /** The address of the client. */
  address: () => string;
};

/** The context of a page below /teams/:teamId. */
export type TeamContext = PageContext & { team: { id: string; name: string }; role: Role };

/** The context of a page below /projects/:projectId. */
export type ProjectContext = TeamContext & { project: EnteredProject };

/** The contents of a page. */
export type View = {
  title: string;
  body: Html;
  /** The active entry of the navigation. */
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
  /** The status code. Default: 200. */
  status?: number;
  /** Whether the page consists of one form. */
  isNarrow?: boolean;
  /** The address of the event stream that notifies the page of changes. */
  live?: string;
  /** Whether the page is public to anyone with its address: without the navigation, and hidden from search engines. */
  isShared?: boolean;
};

/** A redirect after a form. `to` is a path of the dashboard. */
export class SeeOther {
  readonly to: string;
  readonly headers: Record<string, string>;
  constructor(to: string, headers: Record<string, string> = {}) {
    this.to = to;
    this.headers = headers;
  }
}

export type ObjectSchema = v.StrictObjectSchema<v.ObjectEntries, undefined>;
type Input<Schema> = Schema extends v.GenericSchema ? v.InferOutput<Schema> : Record<string, never>;
type VisitorOf<A extends Access> = A extends "public" ? Visitor | undefined : Visitor;
type InProject<Pattern extends string> = Pattern extends `${string}/projects/:projectId${string}`
  ? { project: EnteredProject; team: { id: string; name: string }; role: Role }
  : Pattern extends `${string}/teams/:teamId${string}`
    ? { team: { id: string; name: string }; role: Role }
    : unknown;

/** The arguments of a page's function. */
export type PageOf<Pattern extends string, Q = undefined, F = undefined, A extends Access = "viewer"> = PageContext<
  PathParameters<Pattern>,
  Input<Q>,
  Input<F>,
  VisitorOf<A>
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

/** Declares a page such as `GET /projects/:projectId/tests`. HEAD is included. */
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

/** Declares a POST of form fields that changes something. The CSRF token is checked before. */
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
