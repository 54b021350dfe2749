/** `assay admin create-user` and the commands beside it: the accounts of people. */

import * as v from "valibot";
import { admitUser, createUser, resetPassword } from "../operations/people/accounts.ts";
import { email, newPassword, personName, type Role, role } from "../schema/accounts.ts";
import { createPasswords } from "../secrets/passwords.ts";
import { selectAccountsOfTeam } from "../store/accounts.ts";
import { type AdminCommand, id, missing, option, listOfTeam, type Values } from "./admin_options.ts";
import type { Invocation } from "./invocation.ts";
import { askPassword } from "./terminal.ts";
import { UsageError } from "./usage.ts";

const roleOf = (values: Values, fallback: Role): Role =>
  values["role"] === undefined ? fallback : (option(role, values, "role") as Role);

/** Returns the hash of --password, or of a password read from the terminal or standard input, which other users cannot see. */
async function passwordHash(values: Values, { stdin }: Invocation): Promise<string> {
  const given = values["password"] ?? (await askPassword(stdin));
  const parsed = v.safeParse(newPassword, given);
  if (!parsed.success) throw new UsageError(`--password: ${parsed.issues[0].message}`);
  return await createPasswords().hash(parsed.output);
}

export const ACCOUNT_COMMANDS: Record<string, AdminCommand> = {
  "list-users": listOfTeam(selectAccountsOfTeam),
  "create-user": {
    usage: [
      {
        synopsis: "--email ADDRESS --team ID [--name NAME] [--role owner|member|viewer] [--password TEXT]",
        purpose:
          "create an account and add it to a team (default role: member); without --password, the command asks for it",
      },
      { synopsis: "… --no-password", purpose: "create an account that signs in with OpenID Connect only" },
    ],
    options: ["email", "team", "name", "role", "password"],
    flags: ["no-password"],
    run: async (values, invocation) => {
      const [address, teamId] = [option(email, values, "email"), id(values, "team")];
      const name = values["name"] === undefined ? address.split("@")[0]! : option(personName, values, "name");
      const role = roleOf(values, "member");
      if (values["no-password"] !== undefined && values["password"] !== undefined)
        throw new UsageError("create-user takes either --password or --no-password");
      const hash = values["no-password"] === undefined ? await passwordHash(values, invocation) : null;
      return async (sql) => {
        const created = await createUser(sql, { email: address, name, role, teamId, passwordHash: hash });
        if (created === "no team") missing("team", teamId);
        if (created === "taken")
          throw new Error(`An account "${address}" already exists: add it to a team with admin add-user`);
        return { id: created.id, email: address, role };
      };
    },
  },
  "add-user": {
    usage: [
      { synopsis: "--email ADDRESS --team ID [--role ROLE]", purpose: "add an existing account to another team" },
    ],
    options: ["email", "team", "role"],
    run: (values) => {
      const [address, teamId, role] = [option(email, values, "email"), id(values, "team"), roleOf(values, "member")];
      return async (sql) => {
        const admitted = await admitUser(sql, { email: address, teamId, role });
        if (admitted === "no team") missing("team", teamId);
        if (admitted === "no account") missing("account", address);
        if (admitted === "member") throw new Error(`"${address}" is already a member of this team`);
        return { id: admitted.id, email: address, role };
      };
    },
  },
  "reset-password": {
    usage: [
      {
        synopsis: "--email ADDRESS [--password TEXT]",
        purpose: "set a new password and end all sessions of the account",
      },
    ],
    options: ["email", "password"],
    run: async (values, invocation) => {
      const address = option(email, values, "email");
      const hash = await passwordHash(values, invocation);
      return async (sql) => ({ id: (await resetPassword(sql, address, hash)) ?? missing("account", address) });
    },
  },
};
