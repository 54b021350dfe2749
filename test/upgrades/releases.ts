/**
 * The released schemas, each with a dump beside this file.
 *
 * A schema is released if a server of a released version creates it. Version 0.1 was installed from the main branch, so for 0.1 a
 * schema counts as released if it was the newest one of the main branch for at least an hour; shorter ones were steps of one change.
 * The migrations up to it are those of `sql/` today: a migration does not change after its release.
 *
 * A release with a new schema adds a line. Then `bun test/upgrades/record.ts SCHEMA` writes its dump.
 */
export const RELEASES: readonly { schema: number; commit: string }[] = [
  { schema: 6, commit: "e7a44b48" },
  { schema: 8, commit: "f4df91a8" },
  { schema: 12, commit: "06bea85a" },
  { schema: 18, commit: "7b9c6c2e" },
  { schema: 20, commit: "30cc8f94" },
  { schema: 21, commit: "0bbde8ab" },
  { schema: 25, commit: "19fb85f3" },
  { schema: 27, commit: "7681982f" },
  { schema: 28, commit: "9151cdd9" },
  { schema: 31, commit: "f4b24c4f" },
  { schema: 32, commit: "4fd8c0ad" },
  { schema: 35, commit: "5702634d" },
  { schema: 38, commit: "157784bf" },
  { schema: 44, commit: "165e8365" },
  { schema: 45, commit: "6b893690" },
  { schema: 56, commit: "41bc7c12" },
  { schema: 58, commit: "d1159aa5" },
];
