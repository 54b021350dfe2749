/** The owners of a test, and the source that they come from. */

import type { Html } from "../../../http/html.ts";
import { toSearchWord } from "../../../rules/search_words.ts";
import type { OwnerSource } from "../../../operations/projects/owners.ts";
import type { TestCaseRow } from "../../../store/test_cases.ts";
import { toAddress } from "../../site/paths.ts";
import { testsPath } from "./changes.tsx";

/** The rules of the ownership file that give a test its owners; undefined if there is no file, or no rule. */
export type OwnerSources = { path: string | null; rules: readonly OwnerSource[] } | undefined;

/** "owner @acme/cart, by line 12 of .github/CODEOWNERS". */
export function Owners({
  projectId,
  test,
  source,
}: {
  projectId: string;
  test: TestCaseRow;
  source: OwnerSources;
}): Html {
  const { owners, isOwnerSet } = test;
  if (owners.length === 0) return <>no owner</>;
  const lines = source?.rules.map(({ line }) => line) ?? [];
  const names = owners.map((owner, index) => [
    index === 0 ? "" : ", ",
    <a href={toAddress(testsPath(projectId), { q: toSearchWord("owner", owner) })}>{owner}</a>,
  ]);
  return (
    <>
      {owners.length === 1 ? "owner" : "owners"} {names}
      {isOwnerSet ? (
        ", set manually"
      ) : lines.length === 0 ? null : (
        <>
          , by{" "}
          <a href={`/projects/${projectId}/settings/owners`}>
            {lines.length === 1 ? "line" : "lines"} {lines.join(", ")} of {source?.path ?? "the ownership file"}
          </a>
        </>
      )}
    </>
  );
}
