/** Whether the config of an integration makes sense: checked as its kind says, its addresses not private ones. */

import type { BlockList } from "node:net";
import { check } from "../http/input.ts";
import { hostUrl, isReachable, literalAddress } from "../http/outbound.ts";
import { CONFIGS, type Kind } from "../schema/integration_configs.ts";
import { refuse } from "../schema/refusal.ts";

/** Fails with every bad field, and quotes none. */
export const checkConfig = (kind: Kind, config: Record<string, unknown>): Record<string, unknown> =>
  check(CONFIGS[kind], config, false, "config") as Record<string, unknown>;

/** Refuses addresses that are obviously private; names are looked up when something is sent. */
export function requirePublic(config: Record<string, unknown>, allow: BlockList): void {
  for (const name of ["url", "baseUrl", "host"]) {
    if (typeof config[name] !== "string") continue;
    const url = name === "host" ? hostUrl(config[name]) : new URL(config[name]);
    const address = literalAddress(url) ?? (/^localhost\.?$/i.test(url.hostname) ? "127.0.0.1" : undefined);
    if (address !== undefined && !isReachable(address, allow))
      refuse(
        `Cannot read "config.${name}": it is a private address, which is not reached unless OUTBOUND_ALLOW names it`,
      );
  }
}
