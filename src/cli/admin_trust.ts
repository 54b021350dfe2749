/** `assay admin trust-ci` and the commands beside it: which CI jobs may upload to a project without a stored key. */

import { resolve } from "node:path";
import * as v from "valibot";
import { addTrustRule, removeTrustRule } from "../operations/people/trust_rules.ts";
import { COMMAND_LINE } from "../schema/audit.ts";
import { DEFAULT_ISSUERS, newTrustRule, type TrustKind } from "../schema/trust_rules.ts";
import { selectProject } from "../store/projects.ts";
import { selectProjectOfTrustRule, selectTrustRules } from "../store/trust_rules.ts";
import { type AdminCommand, id, missing, orMissing, toOption, type Values, type AdminWork } from "./admin_options.ts";
import { toFileReason } from "../file_failure.ts";
import type { Invocation } from "./invocation.ts";
import { require, UsageError } from "./usage.ts";

const toList = (text: string | undefined) =>
  text
    ?.split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

async function readKeysFile(path: string, directory: string): Promise<string> {
  try {
    return await Bun.file(resolve(directory, path)).text();
  } catch (error) {
    throw new UsageError(`--keys: cannot read "${path}": ${toFileReason(error, "read")}`);
  }
}

async function trustCi(values: Values, { directory }: Invocation): Promise<AdminWork> {
  const project = id(values, "project");
  const kind = require(values, "kind");
  const given = {
    kind,
    issuer: values["issuer"] ?? DEFAULT_ISSUERS[kind as TrustKind] ?? "",
    repositoryId: require(values, "repository-id"),
    ownerId: values["owner-id"],
    repository: values["repository"],
    events: toList(values["events"]),
    refs: toList(values["refs"]),
    keys: values["keys"] === undefined ? undefined : await readKeysFile(values["keys"], directory),
  };
  const parsed = v.safeParse(
    newTrustRule,
    Object.fromEntries(Object.entries(given).filter(([, field]) => field !== undefined)),
  );
  if (!parsed.success) {
    const { path, type, expected, message } = parsed.issues[0];
    const name = String(path?.[0]?.key ?? "kind");
    const option = toOption(name);
    if (type !== "strict_object") throw new UsageError(`${option}: ${message}`);
    throw new UsageError(expected === "never" ? `${option} is not for --kind ${kind}` : `${option} is missing`);
  }
  return async (sql) => ({
    id: await orMissing("project", project, addTrustRule(sql, project, parsed.output, COMMAND_LINE)),
  });
}

export const TRUST_COMMANDS: Record<string, AdminCommand> = {
  "trust-ci": {
    usage: [
      {
        synopsis:
          "--project ID --kind github|gitlab --repository-id N [--owner-id N] [--repository NAME]\n                 [--events LIST] [--refs LIST] [--issuer URL] [--keys FILE]",
        purpose:
          "let CI jobs of a repository upload without a stored key; --owner-id is required for github; a LIST has commas\n      between its items; FILE is a JSON Web Key Set",
      },
    ],
    options: ["project", "kind", "repository-id", "owner-id", "repository", "events", "refs", "issuer", "keys"],
    run: trustCi,
  },
  "list-trusted-ci": {
    usage: [{ synopsis: "--project ID", purpose: "list the repositories whose CI jobs need no stored key" }],
    options: ["project"],
    run: (values) => {
      const project = id(values, "project");
      return async (sql) => {
        if (!(await selectProject(sql, project))) missing("project", project);
        const rules = await selectTrustRules(sql, project);
        return { data: rules.map(({ keys, ...rule }) => ({ ...rule, keys: keys?.length ?? null })) };
      };
    },
  },
  "untrust-ci": {
    usage: [{ synopsis: "--id ID", purpose: "remove a trust rule and revoke the keys of its jobs" }],
    options: ["id"],
    run: (values) => {
      const rule = id(values, "id");
      return async (sql) => {
        const project = (await selectProjectOfTrustRule(sql, rule)) ?? missing("trust rule", rule);
        await removeTrustRule(sql, project, rule, COMMAND_LINE);
        return { id: rule, removed: true };
      };
    },
  },
};
