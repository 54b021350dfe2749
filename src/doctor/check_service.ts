/** Checks the server as its database shows it: the secret key, what waits, integrations and runners. */

import { existsSync } from "node:fs";
import type { Config } from "../config.ts";
import type { Sql } from "../database/connect.ts";
import { OPERATOR_COMMAND } from "../executable.ts";
import { createSeal } from "../secrets/seal.ts";
import { selectFailingIntegrations, selectHasStoredContent, selectRunnerVersions } from "../store/diagnosis.ts";
import { selectGauges } from "../store/gauges.ts";
import { selectSecretKeyDigest } from "../store/instance.ts";
import { type Finding, findingsOf, toRoughTime } from "./finding.ts";

/** All servers of a database have one key. */
export async function checkKeyOfDatabase(sql: Sql, key: Uint8Array | undefined): Promise<Finding[]> {
  const area = findingsOf("secret key");
  const digest = await selectSecretKeyDigest(sql);
  if (digest === null)
    return key ? [] : [area.ok("There is no secret key, and the database needs none: the next server creates it")];
  if (!key)
    return [
      area.fail(
        "The database is used with a secret key, and there is none here",
        'Set SECRET_KEY, or restore the file "secret-key" in DATA_DIR',
      ),
    ];
  return createSeal(key).keyDigest === digest
    ? [area.ok("The secret key is the key of the database")]
    : [
        area.fail(
          "The secret key is not the key of the database, so a server with it does not start",
          "Set SECRET_KEY to the key of the other servers, or restore it",
        ),
      ];
}

const LATE_SECONDS = 600;

/** Checks what waits for background work, and integrations. Answers of receivers may not be shown, errors are ours. */
export async function checkQueues(sql: Sql): Promise<Finding[]> {
  const area = findingsOf("outbound");
  const server = findingsOf("server");
  const { quiet, eventAge, uncountedAge, deliveryAge } = await selectGauges(sql);
  if (quiet)
    return [
      server.warn(
        "The server is quiet after a restore: it sends, schedules and deletes nothing",
        `Run: ${OPERATOR_COMMAND} admin resume`,
      ),
    ];
  const ages = { events: eventAge, "uploaded runs": uncountedAge, deliveries: deliveryAge };
  const late = Object.entries(ages).filter(([, age]) => age !== null && age > LATE_SECONDS);
  const failing = await selectFailingIntegrations(sql);
  return [
    ...late.map(([what, age]) =>
      server.warn(
        `The oldest of the ${what} that wait for background work is ${toRoughTime(age!)} old`,
        "Look for errors in the log of the servers, and whether one runs",
      ),
    ),
    ...(failing.length === 0
      ? [area.ok("No integration is failing")]
      : failing.map(({ name, kind, seconds, error }) =>
          area.warn(
            `The integration "${name}" (${kind}) has been failing for ${toRoughTime(seconds)}: ${error ?? "unknown error"}`,
            "Fix its settings, and repeat the deliveries on its page",
          ),
        )),
  ];
}

/** Checks that the directory exists that has the attachments of the database. */
export async function checkStoredContent(sql: Sql, { s3, directory }: Config["attachments"]): Promise<Finding[]> {
  if (s3 || existsSync(directory) || !(await selectHasStoredContent(sql))) return [];
  return [
    findingsOf("attachments").fail(
      `"${directory}" does not exist, and the database lists stored attachments`,
      "Set DATA_DIR or ATTACHMENTS_S3 to the value that the servers use, or restore the directory",
    ),
  ];
}

/** `version` is that of this program. */
export async function checkRunners(sql: Sql, version: string): Promise<Finding[]> {
  const area = findingsOf("runners");
  const versions = await selectRunnerVersions(sql);
  const count = versions.reduce((sum, { runners }) => sum + runners, 0);
  const others = versions.filter((one) => one.version !== version);
  if (others.length === 0)
    return [area.ok(count === 0 ? "No runner is online" : `${count} online, version ${version}`)];
  return others.map(({ version: other, runners, examples }) =>
    area.warn(
      `${runners} of ${count} online runners have ${other === null ? "an unknown version" : `version ${other}`}, such as "${examples[0]}"`,
      `Update them to ${version}; older runners keep working`,
    ),
  );
}
