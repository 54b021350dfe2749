/** The recorded form of a release: its database as SQL, and what its server answered. Both files are compressed with zstd. */

import { existsSync, mkdirSync, readdirSync } from "node:fs";
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
  /** They sign in with `PASSWORD`. */
  members: { email: string; role: string; session: string }[];
  invitation: string;
  /** The path of a shared page and of a badge. */
  publicPaths: string[];
  environmentId: string;
};

export type Expectation = {
  version: string;
  schema: number;
  access: Access;
  answers: RecordedAnswer[];
  /** Files of the directory of attachments: their content in base64 by their relative path. */
  attachments: Record<string, string>;
  openapi: object;
};

export type Dump = { sql: string; expectation: Expectation };

export const PASSWORD = "correct horse battery";
/** The key of the execution whose task `unit` has a plan, and the path of this plan. */
export const WAITING = "waits";
export const PLAN = "plan?shard=1/2";
/** The values of the environment `staging`. */
export const VARIABLES = { BASE_URL: "https://staging.acme.example", API_TOKEN: "t-4711" };

/** One pair of files for each release. */
const RELEASES = join(import.meta.dir, "releases");

const read = async (name: string): Promise<string> =>
  new TextDecoder().decode(Bun.zstdDecompressSync(await Bun.file(join(RELEASES, name)).bytes()));

const write = async (name: string, text: string): Promise<number> =>
  await Bun.write(join(RELEASES, name), Bun.zstdCompressSync(text, { level: 19 }));

/** Returns how many bytes both files have. */
export async function writeRelease({ sql, expectation }: Dump): Promise<number> {
  mkdirSync(RELEASES, { recursive: true });
  const { version } = expectation;
  return (await write(`${version}.sql.zst`, sql)) + (await write(`${version}.json.zst`, JSON.stringify(expectation)));
}

/** Returns the dumps of all releases, by version. */
export async function readReleases(): Promise<Dump[]> {
  const versions = (existsSync(RELEASES) ? readdirSync(RELEASES) : [])
    .filter((name) => name.endsWith(".sql.zst"))
    .map((name) => name.slice(0, -".sql.zst".length))
    .sort(Bun.semver.order);
  const readOne = async (version: string): Promise<Dump> => ({
    sql: await read(`${version}.sql.zst`),
    expectation: JSON.parse(await read(`${version}.json.zst`)),
  });
  return await Promise.all(versions.map(readOne));
}
