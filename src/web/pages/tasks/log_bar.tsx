/** The bar above a log: search, errors, follow mode, and the log as a file. */

import type { Html, Path } from "../../../http/html.ts";
import { Hidden } from "../../components/form.tsx";
import type { LogLine } from "../../components/log.tsx";
import { toAddress } from "../../site/paths.ts";

/** The parameters of the address of a log page. `match` is the number of the line that was visited last. */
export type LogAddress = {
  path: Path;
  shard?: string | undefined;
  lease?: string | undefined;
  search?: string | undefined;
  match?: number | undefined;
};

/** Links to the next matching line; after the last comes the first. */
function Matches({ address, lines }: { address: LogAddress; lines: readonly number[] }): Html {
  const { path, match, ...query } = address;
  if (lines.length === 0) return <span role="status">No matches</span>;
  const linkTo = (line: number): Path => `${toAddress(path, { ...query, match: String(line) })}#L${line}`;
  const at = match === undefined ? -1 : lines.indexOf(match);
  const next = lines.find((line) => line > (match ?? 0)) ?? lines[0]!;
  const previous = lines.findLast((line) => line < (match ?? Infinity)) ?? lines.at(-1)!;
  return (
    <>
      <span role="status">
        {at === -1 ? "" : `${at + 1} of `}
        {lines.length === 1 ? "1 matching line" : `${lines.length} matching lines`}
      </span>
      <a class="button" rel="prev" href={linkTo(previous)}>
        Previous
      </a>
      <a class="button" rel="next" href={linkTo(next)}>
        Next
      </a>
    </>
  );
}

/** The parts of the bar that change while the log grows: matches and errors. */
export function LogFindings({ address, lines }: { address: LogAddress; lines: readonly LogLine[] }): Html {
  const errors = lines.filter(({ isError }) => isError);
  const matching = lines.filter(({ matches }) => matches.length > 0).map(({ number }) => number);
  return (
    <>
      {address.search === undefined ? null : <Matches address={address} lines={matching} />}
      {errors.length === 0 ? null : (
        <a class="button" href={`#L${errors[0]!.number}`} data-next-error>
          Next error <span class="soft">{errors.length}</span>
        </a>
      )}
    </>
  );
}

/** `findings` are replaced while the log grows; the field and the button keep their state. */
export function LogBar({
  address: { path, shard, lease, search },
  findings,
  isLive,
}: {
  address: LogAddress;
  findings: Html;
  isLive: boolean;
}): Html {
  const text: Path = `${path}/text`;
  return (
    <div class="log-bar">
      <form method="get" action={path}>
        {shard === undefined ? null : <Hidden name="shard" value={shard} />}
        {lease === undefined ? null : <Hidden name="lease" value={lease} />}
        <input
          type="search"
          name="search"
          value={search}
          maxlength={200}
          placeholder="Search"
          aria-label="Search this log"
        />
        <button>Search</button>
      </form>
      <div data-region="findings">{findings}</div>
      <div>
        {isLive ? (
          <button type="button" data-follow aria-pressed="true" hidden>
            Follow
          </button>
        ) : null}
        <a class="button" href={toAddress(text, { shard, lease })}>
          Raw
        </a>
        <a class="button" href={toAddress(text, { shard, lease, download: "yes" })}>
          Download
        </a>
      </div>
    </div>
  );
}
