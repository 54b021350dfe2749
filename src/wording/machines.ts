/** Sentences about the machines that tests ran on, where they explain failures. */

import { counted } from "./numbers.ts";

/** Returns "a", "a and b" or "a, b and c". */
export const listWords = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** Maximum number of machines that a sentence names. */
const MAX_HOSTS = 4;

function hostWords(hosts: readonly string[]): string {
  const more = hosts.length - MAX_HOSTS;
  return listWords([...hosts.slice(0, MAX_HOSTS), ...(more > 0 ? [`${more} more`] : [])]);
}

/** The machine with all failures of an execution, and those without any. */
export type FailingHost = { host: string; others: string[] };

type Shard = { host: string | null; failed: number };

/** Undefined: fewer than two tests failed, there is no such machine, one is unknown, or the shards do not have exactly `failed` failures. */
export function failingHostOf(shards: readonly Shard[], failed: number): FailingHost | undefined {
  if (
    failed < 2 ||
    shards.some(({ host }) => host === null) ||
    shards.reduce((sum, shard) => sum + shard.failed, 0) !== failed
  )
    return undefined;
  const failing = new Set(shards.flatMap(({ host, failed }) => (failed > 0 ? host! : [])));
  const others = new Set(shards.flatMap(({ host }) => (failing.has(host!) ? [] : host!)));
  const [host, second] = failing;
  return host === undefined || second !== undefined || others.size === 0
    ? undefined
    : { host, others: [...others].toSorted() };
}

/** Returns "All 28 failures are on gh-bad, none on gh-1 and gh-2". */
export const failingHostWords = ({ host, others }: FailingHost, failed: number): string =>
  `All ${counted(failed, "failure")} are on ${host}, none on ${hostWords(others)}`;

/** Returns " on gh-2", ", which ran on gh-1 and gh-2", or "" if no machine is known. */
export const ranOnWords = (hosts: readonly string[]): string =>
  hosts.length === 0 ? "" : hosts.length === 1 ? ` on ${hosts[0]}` : `, which ran on ${hostWords(hosts)}`;
