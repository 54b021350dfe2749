/** Integrations of a team: made and changed with their secrets sealed, tried out, and asked to deliver again. */

import { randomBytes } from "node:crypto";
import type { BlockList } from "node:net";
import { toTestNotice } from "../../wording/notification.ts";
import { type Delivery, MAX_WAITING } from "../../schema/deliveries.ts";
import type { Integration } from "../../schema/integrations.ts";
import { type Kind, SECRETS } from "../../schema/integration_configs.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { integrationPlace } from "../../secrets/places.ts";
import type { Seal } from "../../secrets/seal.ts";
import { checkConfig, requirePublic } from "../../senders/config.ts";
import { actionsOf, type Outbound, sampleOf } from "../../senders/send.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import {
  deleteIntegration,
  insertIntegration,
  type IntegrationRow,
  lockIntegration,
  lockIntegrationForUse,
  selectIntegration,
  updateIntegration,
} from "../../store/integrations.ts";
import { insertDelivery, selectDelivery, selectIsOverQuota, updateDeliveryDue } from "../../store/deliveries.ts";
import { attemptDelivery, openSecrets, ROTATION_MS, type Secrets } from "./deliveries.ts";

/** The key of an integration. */
type IntegrationKey = { teamId: string; integrationId: string };

/** The services that check the addresses and encrypt the secrets of a config. */
type ConfigServices = {
  seal: Seal;
  /** Private addresses that integrations may reach nevertheless. */
  outboundAllow: BlockList;
  /** Called with internal errors. */
  onBug: (error: unknown) => void;
};

/** Returns the integration as answers show it: secrets are null. */
export const toIntegration = ({ sealed: _, config, givenUp, ...row }: IntegrationRow): Integration => ({
  ...row,
  ...(givenUp > 0 ? { givenUp } : {}),
  config: { ...config, ...Object.fromEntries(SECRETS[row.kind].map((name) => [name, null])) },
  actions: [...actionsOf(row.kind)],
});

export const findIntegration = async (sql: Sql, { teamId, integrationId }: IntegrationKey): Promise<IntegrationRow> =>
  (await selectIntegration(sql, teamId, integrationId)) ?? refuseAbsent();

export const createSigningSecret = (): string => `whsec_${randomBytes(32).toString("base64")}`;

function split(kind: Kind, config: Record<string, unknown>): { open: Record<string, unknown>; secrets: Secrets } {
  const isSecret = (name: string) => SECRETS[kind].includes(name);
  const entries = Object.entries(config);
  return {
    open: Object.fromEntries(entries.filter(([name]) => !isSecret(name))),
    secrets: Object.fromEntries(entries.filter(([name]) => isSecret(name))) as Secrets,
  };
}

type GivenIntegration = {
  kind: Kind;
  name?: string | undefined;
  enabled: boolean;
  /** Checked. */
  config: Record<string, unknown>;
};

/** Creates an integration. `made`: the signing secret that was generated for a webhook without one, which is shown only now. */
export async function createIntegration(
  sql: Tx,
  { seal, outboundAllow }: Pick<ConfigServices, "seal" | "outboundAllow">,
  teamId: string,
  { kind, name, enabled, config: given }: GivenIntegration,
): Promise<{ integration: Integration; made: string | undefined }> {
  const made = kind === "webhook" && given["secret"] === undefined ? createSigningSecret() : undefined;
  const config = made === undefined ? given : { ...given, secret: made };
  requirePublic(config, outboundAllow);
  const { open, secrets } = split(kind, config);
  const integrationId = Bun.randomUUIDv7();
  const sealed = seal.seal(integrationPlace(teamId, integrationId), JSON.stringify(secrets));
  await insertIntegration(sql, teamId, integrationId, { kind, name: name ?? kind, enabled, config: open, sealed });
  return { integration: toIntegration(await findIntegration(sql, { teamId, integrationId })), made };
}

/**
 * Changes an integration. Config fields that are omitted and secrets that are null stay as they are; an optional secret that is empty is
 * removed.
 */
export async function changeIntegration(
  sql: Tx,
  services: ConfigServices,
  place: IntegrationKey,
  patch: { name?: string | undefined; enabled?: boolean | undefined; config?: Record<string, unknown> | undefined },
): Promise<Integration> {
  const { teamId, integrationId } = place;
  if (!(await lockIntegration(sql, teamId, integrationId))) refuseAbsent();
  const row = await findIntegration(sql, place);
  const { name, enabled, config } = patch;
  const stored = config === undefined ? {} : reconfigure(services, place, row, config);
  await updateIntegration(sql, teamId, integrationId, { name, enabled, ...stored });
  return toIntegration(await findIntegration(sql, place));
}

function reconfigure(
  services: ConfigServices,
  { teamId, integrationId }: IntegrationKey,
  { kind, config, sealed }: IntegrationRow,
  patch: Record<string, unknown>,
): { config: Record<string, unknown>; sealed: Buffer } {
  const { seal, outboundAllow, onBug } = services;
  const before = openOrForget();
  const { previousSecret, previousUntil, ...old } = before;
  const isSecret = (name: string) => SECRETS[kind].includes(name);
  const given = Object.entries(patch)
    .filter(([name, value]) => !(value === null && isSecret(name)))
    .map(([name, value]) => [name, value === "" && isSecret(name) ? null : value]);
  const checked = checkConfig(kind, { ...config, ...old, ...Object.fromEntries(given) });
  requirePublic(checked, outboundAllow);
  requireSecretsAgain(kind, config, checked, Object.fromEntries(given));
  const { open, secrets } = split(kind, checked);
  const rotated = kind === "webhook" && old["secret"] !== undefined && secrets["secret"] !== old["secret"];
  const until = new Date(Date.now() + ROTATION_MS).toISOString();
  const rotation = rotated
    ? { previousSecret: old["secret"], previousUntil: until }
    : previousSecret && previousUntil
      ? { previousSecret, previousUntil }
      : {};
  const stored = JSON.stringify({ ...secrets, ...rotation });
  return { config: open, sealed: seal.seal(integrationPlace(teamId, integrationId), stored) };

  /** Secrets that do not open are missing, so that they can be entered again. */
  function openOrForget(): ReturnType<typeof openSecrets> {
    try {
      return openSecrets(seal, teamId, integrationId, sealed);
    } catch (error) {
      onBug(error);
      return {};
    }
  }
}

const originOf = (address: unknown) => new URL(String(address)).origin;

/** Refuses to send stored secrets to another server: a person who may not read them could have them sent to a server of their own. */
function requireSecretsAgain(
  kind: Kind,
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  given: Record<string, unknown>,
): void {
  const field = kind === "email" ? "host" : "baseUrl";
  if (typeof before[field] !== "string") return;
  const serverOf = (config: Record<string, unknown>) =>
    kind === "email" ? `${String(config["host"])} ${String(config["port"])}` : originOf(config["baseUrl"]);
  if (serverOf(before) === serverOf(after)) return;
  const kept = SECRETS[kind].filter((name) => after[name] !== null && given[name] === undefined);
  if (kept.length > 0)
    refuse(
      `Cannot change "config.${field}" to another server without ${kept.map((name) => `"config.${name}"`).join(", ")}`,
    );
}

/** Deletes an integration with its deliveries. Returns the name that it had. */
export const removeIntegration = async (sql: Tx, { teamId, integrationId }: IntegrationKey): Promise<string> =>
  (await deleteIntegration(sql, teamId, integrationId)) ?? refuseAbsent();

type Trying = {
  sql: Sql;
  begin: <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;
  seal: Seal;
  outbound: Outbound;
  publicUrl: string;
  /** Begins the transaction after whose commit the sample is sent; default: `begin`. */
  beginToSend?: <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;
  onBug: (error: unknown, deliveryId: string) => void;
};

/** Sends a sample right now, once: a message, or an issue where the kind knows no messages. Answers how it went. */
export async function tryIntegration(
  { sql, begin, beginToSend = begin, seal, outbound, publicUrl, onBug }: Trying,
  place: IntegrationKey,
): Promise<Delivery> {
  const { teamId, integrationId } = place;
  const { kind, name, config, sealed } = await findIntegration(sql, place);
  const id = Bun.randomUUIDv7();
  const notice = toTestNotice(teamId, name, publicUrl, new Date());
  const sample = { id, action: sampleOf(kind), options: {}, notice };
  await beginToSend(async (sql) => {
    // The integration may have been deleted meanwhile.
    if (!(await lockIntegrationForUse(sql, teamId, integrationId))) refuseAbsent();
    await insertDelivery(sql, teamId, { ...sample, integrationId, eventId: null, due: null });
  });
  await attemptDelivery(
    { begin, outbound, seal, onBug: (error) => onBug(error, id) },
    { teamId, id: integrationId },
    { ...sample, kind, integrationName: name, config, sealed, tries: 0, attempts: [] },
    "once",
  );
  return (await selectDelivery(sql, teamId, integrationId, id)) ?? refuseAbsent();
}

/** Sends a delivery again, with the same webhook-id and all its tries. */
export async function redeliver(sql: Tx, place: IntegrationKey & { deliveryId: string }): Promise<Delivery> {
  const { teamId, integrationId, deliveryId } = place;
  const { enabled } = await findIntegration(sql, place);
  const found = (await selectDelivery(sql, teamId, integrationId, deliveryId)) ?? refuseAbsent();
  if (!enabled) refuse("Cannot redeliver: the integration is disabled");
  if (found.status !== "pending" && (await selectIsOverQuota(sql, teamId, integrationId, MAX_WAITING)))
    refuse(`Cannot redeliver: ${MAX_WAITING} deliveries are waiting for the integration already`);
  await updateDeliveryDue(sql, teamId, integrationId, deliveryId);
  return (await selectDelivery(sql, teamId, integrationId, deliveryId)) ?? refuseAbsent();
}
