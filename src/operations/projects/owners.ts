/** The ownership file of a project: stored, and followed by its test cases. */

import { detectSyntax, type ParsedOwners, parseOwners } from "../../rules/codeowners.ts";
import type { OwnerSyntax, Steps } from "../../rules/owner_patterns.ts";
import { createOwnership, type OwnedCase, type Ownership } from "../../rules/owners.ts";
import { isStorable } from "../../schema/fields.ts";
import { MAX_OWNERS_BYTES, MAX_OWNERS_LINES, type OwnersFile, type OwnersQuery } from "../../schema/owners.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import {
  countOwned,
  deleteOwnersFile,
  deleteUnusedOwnerLists,
  insertOwnerLists,
  type OwnedGroup,
  type OwnersFileRow,
  selectOwnedGroups,
  selectOwnersFile,
  updateOwnerLists,
  upsertOwnersFile,
} from "../../store/owners.ts";
import { selectProject } from "../../store/projects.ts";
import { lockTestCases } from "../../store/test_case_names.ts";

type ReadFile = ParsedOwners & { ownersOf: (one: OwnedCase, steps?: Steps) => Ownership | undefined };

/** Maximum number of files that are kept as they were read. */
const MAX_READ_FILES = 20;
const readFiles = new Map<string, ReadFile>();

/** Parsed files are cached, because every upload with new test cases needs that of its project. */
function readFile({ digest, content, syntax }: Pick<OwnersFileRow, "digest" | "content" | "syntax">): ReadFile {
  let read = readFiles.get(digest);
  if (!read) {
    const file = parseOwners(content, syntax);
    read = { ...file, ownersOf: createOwnership(file) };
    const [oldest] = readFiles.keys();
    if (readFiles.size >= MAX_READ_FILES) readFiles.delete(oldest!);
    readFiles.set(digest, read);
  }
  return read;
}

/** The id of a list of owners; null for none. */
function listIdOf(names: readonly string[]): string | null {
  if (names.length === 0) return null;
  const hex = Bun.SHA256.hash(names.join("\n"), "hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

/** Gives test cases that are named their owners by the file of the project. */
export type OwnerAssignment = {
  /** The list of owners of one of the test cases; null: none. */
  listOf(one: OwnedCase): string | null;
  /** Stores the lists that `listOf` has answered since the last call; before the test cases are stored. */
  store(): Promise<void>;
};

const NO_OWNERS: OwnerAssignment = { listOf: () => null, store: async () => {} };

function createAssignment(pool: Sql, projectId: string, found: Map<string, readonly string[]>): OwnerAssignment {
  const unstored = new Map<string, readonly string[]>();
  const stored = new Set<string>();
  return {
    listOf(one) {
      const owners = found.get(keyOf(one)) ?? [];
      const id = listIdOf(owners);
      if (id !== null && !stored.has(id)) unstored.set(id, owners);
      return id;
    },
    async store() {
      if (unstored.size === 0) return;
      await insertOwnerLists(
        pool,
        projectId,
        [...unstored].map(([id, names]) => ({ id, names })),
      );
      for (const id of unstored.keys()) stored.add(id);
      unstored.clear();
    },
  };
}

/**
 * Assigns owners in a transaction that holds the lock for naming, so that the file does not change. Lists are stored outside of it, like
 * some test cases: they stay if the transaction fails, which does no harm. Test cases for which the rules take too many steps get no owner,
 * because their results matter more.
 */
export async function openAssignment(
  sql: Tx,
  pool: Sql,
  projectId: string,
  cases: readonly OwnedCase[],
): Promise<OwnerAssignment> {
  const file = await selectOwnersFile(sql, projectId);
  if (!file) return NO_OWNERS;
  const found = new Map<string, readonly string[]>();
  await findOwners(readFile(file), cases, found);
  return createAssignment(pool, projectId, found);
}

/** Maximum steps for the test cases of a project or an upload, about ten seconds. */
const MAX_STEPS = 200_000_000;
/** Steps after which others get their turn, some ten milliseconds. */
const STEPS_PER_TURN = 1_000_000;

/** Adds the owners of each case to `found`; returns whether all are known, because a file may take too many steps. */
async function findOwners(
  { ownersOf }: ReadFile,
  cases: readonly OwnedCase[],
  found: Map<string, readonly string[]>,
): Promise<boolean> {
  const steps: Steps = { taken: 0 };
  let turnEnds = STEPS_PER_TURN;
  let isWhole = true;
  for (const one of cases) {
    const key = keyOf(one);
    if (!found.has(key)) {
      const ownership = ownersOf(one, steps);
      if (ownership) found.set(key, ownership.owners);
      else isWhole = false;
    }
    if (steps.taken < turnEnds) continue;
    if (steps.taken > MAX_STEPS) return false;
    turnEnds = steps.taken + STEPS_PER_TURN;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return isWhole;
}

/** Returns the owners of each group; refuses a file that takes too long. */
async function createLists(
  read: ReadFile,
  groups: readonly OwnedGroup[],
  known = new Map<string, readonly string[]>(),
): Promise<Map<string, readonly string[]>> {
  if (!(await findOwners(read, groups, known)))
    refuse(
      "Cannot store the owners: its patterns take too long for the test cases of the project, use fewer with wildcards",
    );
  return known;
}

const keyOf = ({ suite, file }: OwnedCase): string => `${suite}\0${file ?? "\0"}`;

const digestOf = (content: string, syntax: OwnerSyntax): string => Bun.SHA256.hash(`${syntax}\n${content}`, "hex");

const checkContent = (content: string): void => {
  if (content.length > MAX_OWNERS_BYTES || Buffer.byteLength(content) > MAX_OWNERS_BYTES)
    refuse(`Cannot read the body: expected a file of at most ${MAX_OWNERS_BYTES / 1_024} KiB`);
  if (content.split("\n", MAX_OWNERS_LINES + 1).length > MAX_OWNERS_LINES)
    refuse(`Cannot read the body: expected a file of at most ${MAX_OWNERS_LINES.toLocaleString("en")} lines`);
  if (!isStorable(content)) refuse(`Cannot read the body: expected a text without NUL and broken characters`);
};

type Transact = <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;

/**
 * Stores the file and assigns the owners of all test cases; an empty file removes them. Returns whether anything was stored: not if it is
 * the stored file, or if it is from a branch other than the default one.
 */
export async function storeOwners(
  sql: Sql,
  transact: Transact,
  projectId: string,
  content: string,
  query: OwnersQuery,
): Promise<boolean> {
  checkContent(content);
  const project = (await selectProject(sql, projectId)) ?? refuseAbsent();
  if (query.branch !== undefined && query.branch !== project.defaultBranch) return false;
  const syntax = query.syntax ?? detectSyntax(content);
  const file = { content, syntax, digest: digestOf(content, syntax) };
  const isStored = (stored: OwnersFileRow | undefined) => (stored?.digest ?? "") === (content.trim() && file.digest);
  if (isStored(await selectOwnersFile(sql, projectId))) return false;
  const read = readFile(file);
  // Matching patterns takes most of the time, so it is done without the lock.
  const known = await createLists(read, await selectOwnedGroups(sql, projectId));
  return await transact(async (tx) => {
    await lockTestCases(tx, projectId);
    if (isStored(await selectOwnersFile(tx, projectId))) return false;
    const { path = null, branch = null, commit = null } = query;
    if (content.trim() === "") await deleteOwnersFile(tx, projectId);
    else await upsertOwnersFile(tx, projectId, { ...file, path, branch, commit });
    await follow(tx, projectId, read, known);
    return true;
  });
}

async function follow(
  sql: Tx,
  projectId: string,
  read: ReadFile,
  known: Map<string, readonly string[]>,
): Promise<void> {
  const groups = await selectOwnedGroups(sql, projectId);
  await createLists(read, groups, known);
  const lists = new Map<string, readonly string[]>();
  const changed = new Map<string, OwnedGroup>();
  for (const { suite, file, ownerList: before } of groups) {
    const names = known.get(keyOf({ suite, file }))!;
    const ownerList = listIdOf(names);
    if (ownerList === before) continue;
    if (ownerList !== null) lists.set(ownerList, names);
    changed.set(keyOf({ suite, file }), { suite, file, ownerList });
  }
  if (lists.size > 0)
    await insertOwnerLists(
      sql,
      projectId,
      [...lists].map(([id, names]) => ({ id, names })),
    );
  await updateOwnerLists(sql, projectId, [...changed.values()]);
  await deleteUnusedOwnerLists(sql, projectId);
}

/** Returns a function that answers the owners of a file of the repository; undefined: the project has no ownership file. */
export async function readOwnership(sql: Sql, projectId: string): Promise<((file: string) => string[]) | undefined> {
  const file = await selectOwnersFile(sql, projectId);
  if (!file) return undefined;
  const { ownersOf } = readFile(file);
  return (path) => ownersOf({ suite: "", file: path })?.owners ?? [];
}

/** Returns the stored file, its unreadable lines, and the number of test cases without an owner. */
export async function readOwners(sql: Sql, projectId: string): Promise<OwnersFile> {
  const [file, counts] = await Promise.all([selectOwnersFile(sql, projectId), countOwned(sql, projectId)]);
  if (!file)
    return {
      ...{ content: null, syntax: null, path: null, branch: null, commit: null, storedAt: null, warnings: [] },
      ...counts,
    };
  const { digest: _, ...shown } = file;
  return { ...shown, warnings: readFile(file).warnings, ...counts };
}

export type OwnerSource = { line: number; pattern: string };

/** The rules of the stored file that give a test case its owners. */
export async function explainOwners(
  sql: Sql,
  projectId: string,
  one: OwnedCase,
): Promise<{ path: string | null; rules: OwnerSource[] } | undefined> {
  const file = await selectOwnersFile(sql, projectId);
  if (!file) return undefined;
  const rules = (readFile(file).ownersOf(one)?.rules ?? []).filter(({ owners }) => owners.length > 0);
  return { path: file.path, rules: rules.map(({ line, text }) => ({ line, pattern: text })) };
}
