/** The admin commands for accounts and for keys with a scope, and what the log of the team has of them. */

import { describe, expect, test } from "bun:test";
import { logIn } from "../../src/operations/people/accounts.ts";
import { selectAuditEntries } from "../../src/store/audit.ts";
import { run } from "../commands.ts";
import { createHarness, databaseVariables } from "../harness.ts";
import { CLIENT, createSignIn, PASSWORD } from "../people.ts";

const { acme, rival, database, connection } = await createHarness({ ownDatabase: true });
const here = databaseVariables(connection);

const assay = (args: string[], env = here, stdin = "") => run(args, { env, stdin });
const admin = (...args: string[]) => assay(["admin", ...args]);
const json = async (...args: string[]) => JSON.parse((await admin(...args, "--json")).output);
const id = crypto.randomUUID();

describe("people", () => {
  const signIn = createSignIn().signIn;
  const logInWith = (email: string, password: string) => logIn(database, signIn, { email, password, client: CLIENT });

  test("get an account and a place in a team; the password is an option or what is piped in", async () => {
    const made = await json("create-user", "--email", "Ada@Acme.example", "--team", acme.team, "--password", PASSWORD);
    expect(made).toEqual({ id: expect.any(String), email: "ada@acme.example", role: "member" });
    expect(await logInWith("ada@acme.example", PASSWORD)).toMatchObject({ accountId: made.id });

    const more = ["--email", "grace@acme.example", "--team", acme.team, "--role", "owner", "--name", "Grace Hopper"];
    const piped = await assay(["admin", "create-user", ...more], here, "piped in, correct\nand no more\n");
    expect([piped.code, piped.errors]).toEqual([0, ""]);
    expect(piped.output).not.toContain("piped in");
    expect(await logInWith("grace@acme.example", "piped in, correct")).toBeDefined();

    const only = ["--email", "sso@acme.example", "--team", acme.team, "--role", "viewer", "--no-password"];
    expect((await admin("create-user", ...only)).code).toBe(0);
    expect(await json("list-users", "--team", acme.team)).toEqual({
      data: [
        { email: "ada@acme.example", name: "ada", role: "member", password: true },
        { email: "grace@acme.example", name: "Grace Hopper", role: "owner", password: true },
        { email: "sso@acme.example", name: "sso", role: "viewer", password: false },
      ].map((user) => ({
        id: expect.any(String),
        createdAt: expect.any(String),
        lastSeenAt: user.password ? expect.any(String) : null,
        ...user,
      })),
    });
  });

  test("are told apart: nobody's account is made twice, and one that there is gets a place in another team", async () => {
    const create = ["create-user", "--email", "ADA@acme.example", "--team", rival.team, "--password", PASSWORD];
    expect(await admin(...create)).toEqual({
      code: 1,
      output: "",
      errors: 'An account "ada@acme.example" already exists: add it to a team with admin add-user\n',
    });
    const add = ["add-user", "--email", "ada@acme.example", "--team", rival.team, "--role", "owner"];
    expect(await json(...add)).toMatchObject({ email: "ada@acme.example", role: "owner" });
    expect((await admin(...add)).errors).toBe('"ada@acme.example" is already a member of this team\n');
    for (const args of [
      ["add-user", "--team", acme.team],
      ["reset-password", "--password", PASSWORD],
    ])
      expect((await admin(...args, "--email", "nobody@acme.example")).errors).toBe(
        'No such account: "nobody@acme.example"\n',
      );
    expect((await admin("add-user", "--email", "ada@acme.example", "--team", id)).errors).toBe(
      `No such team: "${id}"\n`,
    );
    expect((await admin("create-user", "--email", "x@acme.example", "--team", id, "--no-password")).errors).toBe(
      `No such team: "${id}"\n`,
    );
  });

  test("get a new password, which ends every session", async () => {
    const before = await logInWith("ada@acme.example", PASSWORD);
    const reset = await assay(["admin", "reset-password", "--email", "ada@acme.example"], here, "the operator's own\n");
    expect([reset.code, reset.errors]).toEqual([0, ""]);
    expect(await database.pool`select from session where id = ${before.sessionId}`).toHaveLength(0);
    expect(await logInWith("ada@acme.example", "the operator's own")).toBeDefined();
  });

  test.each([
    [
      "create-user",
      ["--email", "nonsense", "--team", id, "--password", PASSWORD],
      "--email: expected an e-mail address",
    ],
    [
      "create-user",
      ["--email", "a@b", "--team", id, "--password", "short"],
      "--password: expected a password of 10 to",
    ],
    ["create-user", ["--email", "a@b", "--team", id], "--password is missing"],
    [
      "create-user",
      ["--email", "a@b", "--team", id, "--role", "king", "--no-password"],
      '--role: expected "viewer", "member"',
    ],
    ["create-user", ["--email", "a@b", "--team", id, "--no-password", "--password", PASSWORD], "takes either"],
    ["reset-password", ["--password", PASSWORD], "--email is missing"],
  ])("%s %p is a wrong usage", async (name, args, message) => {
    const { code, errors } = await admin(name, ...args);
    expect([code, errors.split("\n")[0]]).toEqual([2, expect.stringContaining(message)]);
    expect(errors).not.toContain(PASSWORD);
  });

  test("a key with a scope is one more of the project, and is refused without a name or with another scope", async () => {
    const { id: team } = await json("create-team", "--name", "Scoped");
    const { id: project } = await json("create-project", "--team", team, "--name", "web");
    await json("generate-key", "--project", project);
    const scoped = ["generate-key", "--project", project, "--scope", "upload"];
    await json(...scoped, "--name", "nightly", "--days", "30");
    const { data } = await json("list-keys", "--team", team);
    expect(data).toMatchObject([
      { name: "nightly", scope: "upload", expiresAt: expect.any(String), revokedAt: null },
      { name: null, scope: null, expiresAt: null, revokedAt: null },
    ]);
    for (const [args, message] of [
      [scoped, "--name is missing"],
      [["generate-key", "--project", project, "--name", "x"], "--scope: a named key needs one of"],
      [["generate-key", "--project", project, "--name", "x", "--scope", "all"], "--scope: expected"],
      [[...scoped, "--name", "x", "--days", "0"], "--days: expected an integer"],
    ] as const) {
      const { code, errors } = await admin(args[0]!, ...args.slice(1));
      expect([code, errors.split("\n")[0]]).toEqual([2, expect.stringContaining(message)]);
    }
  });

  test("and what the command line does to keys is in the team's log", async () => {
    const { id: team } = await json("create-team", "--name", "Logged");
    const { id: project } = await json("create-project", "--team", team, "--name", "web");
    const { id: key, leading } = await json("generate-key", "--project", project);
    await admin("revoke-key", "--id", key);
    await admin("create-user", "--email", "log@acme.example", "--team", team, "--no-password");
    const entries = await selectAuditEntries(database.pool, team, { limit: 10 });
    expect(entries.map(({ action, actor, subject }) => [action, actor, subject])).toEqual([
      ["member.added", "command line", "log@acme.example"],
      ["key.revoked", "command line", leading],
      ["key.generated", "command line", leading],
      ["project.created", "command line", "web"],
    ]);
  });
});
