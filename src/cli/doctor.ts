/** `assay doctor`: checks the installation of a server, on its machine and with its configuration. */

import { resolve } from "node:path";
import { type Config, readConfig } from "../config.ts";
import { diagnose } from "../doctor/diagnose.ts";
import type { Finding } from "../doctor/finding.ts";
import { counted } from "../wording/numbers.ts";
import type { EnvironmentVariables, Invocation } from "./invocation.ts";
import { createOutputMask, toJsonLine, toPlainLine } from "./output.ts";
import { parseOptions } from "./usage.ts";

export const DOCTOR_HELP = `Usage: assay doctor [--json]

Checks the installation of a server on its machine, with the same environment variables as the server, whether it runs or
not. It changes nothing. If the server uses the built-in PostgreSQL and does not run, PostgreSQL is started for the checks.

Each line is one finding: ok, warn or fail, what was checked, what was found, and for warn and fail what to do.

  --json   print one line of JSON: { "ok", "findings": [{ "level", "area", "message", "remedy" }] }

Exit code: 0 if nothing has failed, 1 otherwise, 2 for wrong usage.`;

/** Returns the exit code. Throws UsageError. */
export async function doctor(args: string[], { environment, directory, secrets, stdout }: Invocation): Promise<number> {
  const { json } = parseOptions(args, []);
  const mask = createOutputMask([...secrets.list(), ...serverSecretsOf(environment)]);
  const findings: Finding[] = [];
  for await (const finding of diagnoseEnvironment(environment, directory)) {
    findings.push(finding);
    if (!json) stdout.print(mask(toLine(finding)));
  }
  const isOk = findings.every(({ level }) => level !== "fail");
  stdout.print(json ? mask(toJsonLine({ ok: isOk, findings })) : toSummary(findings));
  return isOk ? 0 : 1;
}

async function* diagnoseEnvironment(environment: EnvironmentVariables, directory: string): AsyncGenerator<Finding> {
  let config: Config;
  try {
    config = readConfig(environment, directory);
  } catch (error) {
    const remedy = "Fix the variable: the server does not start with it (docs/configuration.md)";
    for (const message of (error as Error).message.split("\n"))
      yield { level: "fail", area: "configuration", message, remedy };
    return;
  }
  const given = environment["SECRET_KEY_FILE"]?.trim() || undefined;
  yield* diagnose(config, given && resolve(directory, given));
}

const SECRETS = [
  ...["SECRET_KEY", "SECRET_KEY_OLD", "METRICS_TOKEN", "OIDC_CLIENT_SECRET", "PGPASSWORD"],
  ...["S3_SECRET_ACCESS_KEY", "S3_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
];
const MIN_SECRET_LENGTH = 4;

/** The secrets of the configuration, and the passwords in its addresses. */
function serverSecretsOf(environment: EnvironmentVariables): string[] {
  const passwords = ["DATABASE_URL", "OUTBOUND_PROXY"].flatMap((name) => {
    const text = environment[name]?.trim() ?? "";
    const written = /:\/\/[^/?#]*?:([^/?#]*)@/.exec(text)?.[1] ?? "";
    return URL.canParse(text) ? [written, decodeURIComponent(new URL(text).password)] : [written];
  });
  const secrets = [...SECRETS.map((name) => environment[name]?.trim() ?? ""), ...passwords];
  return [...new Set(secrets)].filter(({ length }) => length >= MIN_SECRET_LENGTH);
}

const AREA_WIDTH = 13;

const toLine = ({ level, area, message, remedy }: Finding): string =>
  toPlainLine(`${level.padEnd(4)}  ${area.padEnd(AREA_WIDTH)}  ${message}${remedy === undefined ? "" : `. ${remedy}`}`);

function toSummary(findings: readonly Finding[]): string {
  const count = (wanted: Finding["level"]) => findings.filter(({ level }) => level === wanted).length;
  return `${count("ok")} ok, ${counted(count("warn"), "warning")}, ${counted(count("fail"), "failure")}`;
}
