/** The trust rules of a project, in the browser. */

import { describe, expect, test } from "bun:test";
import { addTrustRule } from "../../src/operations/people/trust_rules.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import { MAX_TRUST_RULES } from "../../src/schema/trust_rules.ts";
import { createPages, formsOf } from "./browser.ts";

const { acme, database, look, fill } = await createPages();
const page = `/projects/${acme.project}/settings/ci`;
const EMPTY = {
  ...{ kind: "github", repositoryId: "", ownerId: "", repository: "" },
  ...{ events: "", refs: "", issuer: "", keys: "" },
};
const add = (fields: object) => fill("owner", page, { ...EMPTY, ...fields });
const removal = async () => formsOf(await look("owner", page)).find((path) => path.endsWith("/remove"))!;

describe("trust rules", () => {
  test("of a GitLab server that requests do not reach hold its keys", async () => {
    const keys = JSON.stringify({ keys: [{ kty: "RSA", n: "AQAB", e: "AQAB", kid: "a" }] });
    const given = { kind: "gitlab", repositoryId: "7", ownerId: "ignored", issuer: "http://gitlab.internal", keys };
    expect((await add(given)).location).toBe(`${page}?notice=added`);
    expect((await look("owner", page)).words).toContain(
      "repository 7 GitLab CI 7 every event on every ref from http://gitlab.internal stored keys",
    );
    await fill("owner", await removal(), {});
  });

  test("are one for a form that is sent twice, and not too many", async () => {
    const given = { repositoryId: "1", ownerId: "1" };
    expect((await add(given)).status).toBe(303);
    expect((await add(given)).words).toContain("This project already has this trust rule");
    await database.begin(async (sql) => {
      for (let index = 2; index <= MAX_TRUST_RULES; index++) {
        const rule = { kind: "gitlab", issuer: "https://gitlab.com", repositoryId: String(index) } as const;
        await addTrustRule(sql, acme.project, { ...rule, events: [], refs: [] }, COMMAND_LINE);
      }
    });
    expect((await add({ repositoryId: "9", ownerId: "1" })).words).toContain(
      `A project has at most ${MAX_TRUST_RULES} trust rules`,
    );
  });
});
