/** The admin commands for teams, projects, keys and trust rules, without a database and with one of another schema; and help. */

import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { schemaVersion } from "../../src/database/migrate.ts";
import { selectAuditEntries } from "../../src/store/audit.ts";
import { createFolder, run, type Variables } from "../commands.ts";
import { createBareDatabase, createDatabase, createHarness, databaseVariables } from "../harness.ts";
import { PASSWORD } from "../people.ts";

const { acme, rival, ask, database, connection, addProject } = await createHarness({ ownDatabase: true });

const here = databaseVariables(connection);

const assay = (args: string[], env: Variables = here, stdin = "") => run(args, { env, stdin });
const admin = (...args: string[]) => assay(["admin", ...args]);
const json = async (...args: string[]) => JSON.parse((await admin(...args, "--json")).output);

const id = crypto.randomUUID();
const COMMANDS = {
  "list-teams": [],
  "create-team": ["--name", "x"],
  "list-projects": ["--team", id],
  "create-project": ["--team", id, "--name", "x"],
  "generate-key": ["--project", id],
  "delete-project": ["--id", id, "--confirm", "x"],
  "delete-team": ["--id", id, "--confirm", "x"],
  "list-keys": ["--team", id],
  "revoke-key": ["--id", id],
  "trust-ci": ["--project", id, "--kind", "gitlab", "--repository-id", "7"],
  "list-trusted-ci": ["--project", id],
  "untrust-ci": ["--id", id],
  "list-users": ["--team", id],
  "create-user": ["--email", "a@acme.example", "--team", id, "--password", "correct horse"],
  "add-user": ["--email", "a@acme.example", "--team", id],
  "forget-secret-key": [],
  quiet: [],
  resume: [],
  "reset-password": ["--email", "a@acme.example", "--password", "correct horse"],
};

describe("where there is no database", () => {
  test.each(Object.entries(COMMANDS))("%s says so and makes nothing", async (name, options) => {
    const place = createFolder();
    const dataDir = join(place, "data");
    const { code, output, errors } = await assay(["admin", name, ...options, "--json"], { DATA_DIR: dataDir });
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toBe(
      `No database in "${dataDir}": set DATA_DIR or DATABASE_URL to the value that the server uses, or create a database with "bun start"\n`,
    );
    expect(existsSync(dataDir)).toBe(false);
  });

  test("a directory that holds something else stays as it is", async () => {
    const place = createFolder();
    await Bun.write(join(place, "secret-key"), "x");
    expect((await assay(["admin", "list-teams"], { DATA_DIR: place })).code).toBe(1);
    expect(readdirSync(place)).toEqual(["secret-key"]);
    // As a first start leaves it that was killed before there was a cluster.
    mkdirSync(join(place, "elsewhere"));
    symlinkSync(join(place, "elsewhere"), join(place, "postgres"));
    const { code, errors } = await assay(["admin", "list-teams"], { DATA_DIR: place });
    expect([code, errors]).toEqual([1, expect.stringContaining("No database in")]);
    expect(readdirSync(join(place, "elsewhere"))).toEqual([]);
  });

  test("one that is gone from where a link points is told as before", async () => {
    const place = createFolder();
    symlinkSync(join(place, "gone"), join(place, "postgres"));
    const { code, errors } = await assay(["admin", "list-teams"], { DATA_DIR: place });
    expect([code, errors]).toEqual([1, expect.stringContaining("is gone: restore")]);
  });
});

describe("a database of another schema", () => {
  test.each(["list-teams", "create-team", "quiet"] as const)("%s creates nothing in an empty one", async (name) => {
    const bare = await createBareDatabase();
    const env = databaseVariables(bare.connection);
    const { code, output, errors } = await assay(["admin", name, ...COMMANDS[name]], env);
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toBe("The database has no tables of Assay: start the server first, which creates them\n");
    const tables = await bare.database.pool`select from pg_tables where schemaname = 'public'`;
    expect(tables).toHaveLength(0);
  });

  test("a newer one is refused", async () => {
    const { connection, database: newer } = await createDatabase();
    const known = await schemaVersion();
    await newer.pool`insert into migration (number, name) values (${known + 1}, 'later')`;
    const { code, errors } = await assay(["admin", "list-teams"], databaseVariables(connection));
    expect(code).toBe(1);
    expect(errors).toContain(`The database has schema ${known + 1}, this version of Assay knows`);
  });
});

test("forget-secret-key is refused while a server is connected, which may encrypt something at any moment", async () => {
  const errors = "A server or another command of Assay uses the database: stop it, and repeat this command\n";
  expect(await admin("forget-secret-key")).toEqual({ code: 1, output: "", errors });
});

describe("an id that nothing has", () => {
  test.each<[what: string, args: string[]]>([
    ["team", ["list-projects", "--team", id]],
    ["team", ["create-project", "--team", id, "--name", "x"]],
    ["team", ["generate-key", "--team", id]],
    ["project", ["generate-key", "--project", id]],
    ["team", ["list-keys", "--team", id]],
    ["key", ["revoke-key", "--id", id]],
    ["project", ["trust-ci", "--project", id, "--kind", "gitlab", "--repository-id", "7"]],
    ["project", ["list-trusted-ci", "--project", id]],
    ["trust rule", ["untrust-ci", "--id", id]],
    ["project", ["delete-project", "--id", id, "--confirm", "x"]],
    ["team", ["delete-team", "--id", id, "--confirm", "x"]],
    // Such as stands for something else.
    ["project", ["generate-key", "--project", acme.team]],
    ["team", ["list-keys", "--team", acme.project]],
  ])("is told: no %s (%p)", async (what, args) => {
    const wanted = args.find((arg) => /^[0-9a-f-]{36}$/.test(arg));
    expect(await admin(...args)).toEqual({ code: 1, output: "", errors: `No such ${what}: "${wanted}"\n` });
  });
});

describe("trust rules", () => {
  test("are added, listed and removed, and the team's log has it", async () => {
    const { project } = rival;
    const place = createFolder();
    const keys = join(place, "keys.json");
    await Bun.write(keys, JSON.stringify({ keys: [{ kty: "RSA", n: "AQAB", e: "AQAB", kid: "a" }] }));
    const issuer = "https://github.acme.example/_services/token";
    const names = ["--project", project, "--kind", "github", "--repository-id", "700100", "--owner-id", "4711"];
    const rule = [...names, "--repository", "acme/shop", "--events", "push, schedule", "--refs", "refs/heads/*"];
    const { id } = await json("trust-ci", ...rule, "--keys", keys, "--issuer", issuer);
    const listed = {
      ...{ id, kind: "github", repositoryId: "700100", ownerId: "4711", repository: "acme/shop", keys: 1, issuer },
      ...{ events: ["push", "schedule"], refs: ["refs/heads/*"], createdAt: expect.any(String), lastUsedAt: null },
    };
    expect(await json("list-trusted-ci", "--project", project)).toEqual({ data: [listed] });
    expect(await json("untrust-ci", "--id", id)).toEqual({ id, removed: true });
    expect(await json("list-trusted-ci", "--project", project)).toEqual({ data: [] });
    const entries = await selectAuditEntries(database.pool, rival.team, { limit: 10 });
    expect(entries.filter(({ subject }) => subject === "acme/shop")).toMatchObject([
      { action: "trust_rule.removed", actor: "command line" },
      { action: "trust_rule.added", actor: "command line" },
    ]);
  });

  test.each([
    [["--kind", "gitea"], `--kind: expected "github" or "gitlab"`],
    [["--kind", "github"], "--owner-id is missing"],
    [["--kind", "gitlab", "--owner-id", "7"], "--owner-id is not for --kind gitlab"],
    [
      ["--kind", "gitlab", "--issuer", "http://gitlab.internal"],
      "--issuer: expected an https address without query and user, or also its keys",
    ],
    [["--kind", "gitlab", "--refs", "main"], "--refs: expected a Git ref such as refs/heads/main; * matches any text"],
  ])("are refused with the option that is wrong: %p", async (options, message) => {
    const { code, errors } = await admin("trust-ci", "--project", acme.project, "--repository-id", "7", ...options);
    expect([code, errors.split("\n")[0]]).toEqual([2, message]);
  });
});

describe("lists", () => {
  test("teams with the number of their projects, and projects of one team or of all", async () => {
    const other = await addProject(acme);
    const teams = await json("list-teams");
    const team = (id: string, name: string, projects: number) => {
      return { id, name, projects, createdAt: expect.any(String) };
    };
    expect(teams.data).toHaveLength(2);
    expect(teams.data).toEqual(expect.arrayContaining([team(acme.team, "Acme", 2), team(rival.team, "Rival", 1)]));

    const project = (id: string, name: string, teamId: string, team: string) => {
      return { id, name, teamId, team, createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/) };
    };
    const own = [
      project(acme.project, "Acme web", acme.team, "Acme"),
      project(other.project, "other", acme.team, "Acme"),
    ];
    expect(await json("list-projects", "--team", acme.team)).toEqual({ data: own });
    const all = await json("list-projects");
    expect(all.data).toHaveLength(3);
    expect(all.data).toEqual(expect.arrayContaining(own));
  });

  test("are a table for people, in which no name breaks a line", async () => {
    const { id } = await json("create-team", "--name", "A\nB \u001b[31mC");
    const { code, output } = await admin("list-teams");
    const lines = output.trimEnd().split("\n");
    const rows = await database.pool`select from team`;
    expect([code, lines.length]).toEqual([0, rows.length + 1]);
    const row = lines.find((line) => line.startsWith(id))!;
    expect(row).toMatch(/^[0-9a-f-]{36}  A B  \[31mC {2,}0 {2,}\d{4}-\S+Z$/);
    const column = lines[0]!.indexOf("projects");
    expect(lines[0]).toMatch(/^id {36}name +projects +createdAt$/);
    expect(lines.slice(1).map((line) => /\d/.test(line[column]!))).toEqual(rows.map(() => true));
    expect((await admin("list-projects", "--team", id)).output).toBe("None\n");
  });
});

describe("deletions", () => {
  test("need the name, and what is deleted is in no list and opens with no key", async () => {
    const { id: team } = await json("create-team", "--name", "Doomed");
    const { id: project } = await json("create-project", "--team", team, "--name", "web");
    const { key } = await json("generate-key", "--project", project);
    const { key: teamKey } = await json("generate-key", "--team", team);
    const wrong = await admin("delete-project", "--id", project, "--confirm", "Web");
    const message = '--confirm: expected the name of the project, "web", got "Web"\n';
    expect(wrong).toEqual({ code: 1, output: "", errors: message });
    expect((await ask(`GET /projects/${project}`, { key })).status).toBe(200);

    const deleted = { id: project, teamId: team, name: "web", revokedKeys: 1 };
    expect(await json("delete-project", "--id", project, "--confirm", "web")).toEqual(deleted);
    expect((await ask(`GET /projects/${project}`, { key })).status).toBe(401);
    expect((await json("list-projects", "--team", team)).data).toEqual([]);
    expect((await admin("delete-project", "--id", project, "--confirm", "web")).errors).toStartWith("No such project");
    const [entry] = await selectAuditEntries(database.pool, team, { limit: 1 });
    const details = { projectId: project, revokedKeys: 1 };
    expect(entry).toMatchObject({ action: "project.deleted", actor: "command line", subject: "web", details });

    expect((await admin("delete-team", "--id", team, "--confirm", "doomed")).code).toBe(1);
    const { output } = await admin("delete-team", "--id", team, "--confirm", "Doomed");
    expect(output).toBe(`id ${team}  name Doomed  projects 0  revokedKeys 1\n`);
    expect((await ask(`GET /teams/${team}/environments`, { key: teamKey })).status).toBe(401);
    expect((await json("list-teams")).data.map(({ id }: { id: string }) => id)).not.toContain(team);
    expect((await admin("list-keys", "--team", team)).errors).toBe(`No such team: "${team}"\n`);
  });
});

test.each(["upload", "split", "runner", "why"])(
  "%s prints its help, and names it after wrong usage",
  async (command) => {
    for (const args of [
      [command, "--help"],
      [command, "-h"],
      ["help", command],
      [command, "--nope", "--help"],
    ]) {
      const { code, output, errors } = await assay(args);
      expect([args, code, output, errors]).toEqual([args, 0, expect.stringContaining(`Usage: assay ${command} `), ""]);
    }
    const { code, output, errors } = await assay([command, "--nope"]);
    const lines = ["Unknown option '--nope'", `Run "assay ${command} --help" for usage`, ""];
    expect([code, output, errors.split("\n")]).toEqual([2, "", lines]);
  },
);

test.each(Object.keys(COMMANDS))("admin %s prints its help without a database", async (name) => {
  for (const args of [
    [name, "--help"],
    ["help", name],
  ]) {
    const { code, output } = await assay(["admin", ...args], { DATA_DIR: "/nowhere" });
    expect([args, code, output]).toEqual([args, 0, expect.stringContaining(`\n  admin ${name}`)]);
    expect(new Set(output.match(/^ {2}admin \S+/gm))).toEqual(new Set([`  admin ${name}`]));
  }
});

test("an unavailable database is named by its address, without the password", async () => {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = server;
  server.stop(true);
  const DATABASE_URL = `postgres://operator:${PASSWORD.replaceAll(" ", "-")}@127.0.0.1:${port}/assay`;
  const { code, errors } = await assay(["admin", "list-teams"], { DATABASE_URL });
  const message = `Cannot connect to the database of DATABASE_URL at 127.0.0.1:${port}: the connection was refused\n`;
  expect([code, errors]).toEqual([1, message]);
});

test("the help names every command, and an unknown command is wrong usage", async () => {
  for (const args of [
    ["admin", "--help"],
    ["admin", "help"],
  ]) {
    const { code, output } = await assay(args);
    expect([args, code]).toEqual([args, 0]);
    for (const name of Object.keys(COMMANDS)) expect(output).toContain(`  admin ${name}`);
  }
  const wrong: [string[], string, string][] = [
    [["admin"], "Missing command after admin", "assay admin --help"],
    [["admin", "nope"], "Unknown command: admin nope", "assay admin --help"],
    [["admin", "list-keys"], "--team is missing", "assay admin list-keys --help"],
    [["nope"], "Unknown command: nope", "assay --help"],
    [[], "Missing command", "assay --help"],
  ];
  for (const [args, message, help] of wrong)
    expect([args, (await assay(args)).errors]).toEqual([args, `${message}\nRun "${help}" for usage\n`]);
  for (const args of [["nope"], ["constructor"], ["list-projects", "--team", "x"], ["list-teams", "--team", acme.team]])
    expect([args, (await admin(...args)).code]).toEqual([args, 2]);
});
