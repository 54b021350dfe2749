/** Declares a tool: its name, its input, and the function that answers it from the API of the project. */

import type * as v from "valibot";
import type { NamedScope } from "../schema/keys.ts";
import type { JsonRecord } from "./json_rpc.ts";
import type { Cleaner } from "./untrusted.ts";

export type QueryValues = Record<string, string | number | undefined>;

/** The API of the caller's project, in this process. Fails as the API does; paths are relative to the project. */
export type ProjectApi = {
  get: <T>(path: string, query?: QueryValues) => Promise<T>;
  getText: (path: string, query?: QueryValues) => Promise<string>;
  send: <T>(method: "POST" | "PATCH", path: string, body: unknown) => Promise<T>;
};

type ToolContext<Arguments> = { api: ProjectApi; args: Arguments; cleaner: Cleaner };

/** What a tool answers: its data, what it has left out on purpose, and how to get what does not fit. */
type ToolAnswer = { data: JsonRecord; leftOut?: readonly string[]; hint?: string };

type InputSchema = v.StrictObjectSchema<v.ObjectEntries, undefined>;

type Declaration<Input extends InputSchema> = {
  name: string;
  title: string;
  /** The description for the assistant: what the tool answers and when to call it. */
  description: string;
  input: Input;
  /** A tool that changes something needs a key of this scope, or the project's own. */
  scope: Extract<NamedScope, "read" | "triage">;
  /** Whether a second call with the same arguments changes nothing more. */
  isIdempotent?: boolean;
};

export type Tool = Declaration<InputSchema> & { run: (context: ToolContext<never>) => Promise<ToolAnswer> };

export const tool = <const Input extends InputSchema>(
  declaration: Declaration<Input>,
  run: (context: ToolContext<v.InferOutput<Input>>) => Promise<ToolAnswer>,
): Tool => ({ ...declaration, run: run as Tool["run"] });

/** Whether a key of this scope may call the tool; null is the project's own key. */
export const mayCall = ({ scope }: Tool, keyScope: string | null): boolean =>
  scope === "read" || keyScope === null || keyScope === scope;
