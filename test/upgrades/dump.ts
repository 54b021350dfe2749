/** The stored form of a release: its database as SQL, and what its server answered. Both files are compressed with zstd. */

import { join } from "node:path";

/** A request with a key of `Access` and the complete answer of the server. */
export type RecordedAnswer = { key: "projectKey" | "teamKey"; path: string; status: number; body: unknown };

export type Access = {
  team: string;
  project: string;
  projectKey: string;
  teamKey: string;
  /** Keys that answer 401. */
  revokedKeys: string[];
  /** Sign in with `PASSWORD`; empty for schemas without accounts. */
  members: { email: string; role: string; session: string | null }[];
  invitation: string | null;
  /** The path of a shared page and of a badge. */
  publicPaths: string[];
  environmentId: string;
};

export type Expectation = {
  schema: number;
  commit: string;
  access: Access;
  answers: RecordedAnswer[];
  /** Files of the directory of attachments: their content in base64 by their relative path. */
  attachments: Record<string, string>;
};

export const PASSWORD = "correct horse battery";
/** The key of the execution whose task `unit` has a plan, and the path of this plan. */
export const WAITING = "waits";
export const PLAN = "plan?shard=1/2";
/** The values of the environment `staging`. */
export const VARIABLES = { BASE_URL: "https://staging.acme.example", API_TOKEN: "t-4711" };

/** The names of the two files of a schema. */
export const fileNames = (schema: number): { sql: string; json: string } => {
  const number = String(schema).padStart(4, "0");
  return { sql: `${number}.sql.zst`, json: `${number}.json.zst` };
};
const API = "openapi.json.zst";

const toPath = (name: string) => join(import.meta.dir, name);

async function read(name: string): Promise<string> {
  return new TextDecoder().decode(Bun.zstdDecompressSync(await Bun.file(toPath(name)).bytes()));
}

/** Returns how many bytes the file has. */
async function write(name: string, text: string): Promise<number> {
  return await Bun.write(toPath(name), Bun.zstdCompressSync(text, { level: 19 }));
}

export const readSql = (schema: number): Promise<string> => read(fileNames(schema).sql);
export const readExpectation = async (schema: number): Promise<Expectation> =>
  JSON.parse(await read(fileNames(schema).json));

/** The OpenAPI document of the newest release. */
export const readReleasedApi = async (): Promise<any> => JSON.parse(await read(API));
export const writeReleasedApi = (document: object): Promise<number> => write(API, JSON.stringify(document));

/** Returns how many bytes both files have. */
export async function writeDump(sql: string, expectation: Expectation): Promise<number> {
  const { schema } = expectation;
  const names = fileNames(schema);
  return (await write(names.sql, sql)) + (await write(names.json, JSON.stringify(expectation)));
}
