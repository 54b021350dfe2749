/** Who a browser's cookies belong to, and whose forms are ours. */

import { describe, expect, test } from "bun:test";
import { createHarness } from "../harness.ts";
import { createPerson } from "../people.ts";
import { createVisitors } from "../../src/request/visitors.ts";
import { removeMember } from "../../src/operations/people/members.ts";

const { acme, rival, database } = await createHarness();
const secret = new Uint8Array(32).fill(3);
const visitors = createVisitors(database, { publicUrl: "https://assay.example", secret });
const ours = { origin: "https://assay.example", "content-type": "application/x-www-form-urlencoded" };
const request = (headers: Record<string, string> = {}) =>
  new Request("https://assay.example/", { headers: { ...ours, ...headers } });

test("a visitor has the roles that he has now, in his own teams alone", async () => {
  const person = await createPerson(database, { team: acme.team, role: "member" });
  await createPerson(database, { team: rival.team, role: "owner" });
  const cookie = visitors.keep(person.token).split(";")[0]!;
  expect(cookie).toBe(`__Host-assay_session=${person.token}`);
  const find = async () => (await visitors.find(`theme=dark; ${cookie}`))?.teams;
  expect(await find()).toEqual([{ teamId: acme.team, teamName: "Acme", role: "member" }]);
  await database.pool`update membership set role = 'viewer' where account_id = ${person.accountId}`;
  expect(await find()).toEqual([{ teamId: acme.team, teamName: "Acme", role: "viewer" }]);
  const owner = await createPerson(database, { team: acme.team, role: "owner" });
  await removeMember(database, owner, { teamId: acme.team, accountId: person.accountId });
  expect(await find()).toEqual([]);
  for (const wrong of [
    null,
    "",
    `assay_session=${person.token}`,
    `${cookie}; ${cookie}`,
    "__Host-assay_session=' or 1=1",
  ])
    expect(await visitors.find(wrong)).toBeUndefined();
});

describe("a form", () => {
  test("of somebody who is signed in holds a token of his very session", () => {
    const [mine, theirs] = [{ sessionId: Bun.randomUUIDv7() }, { sessionId: Bun.randomUUIDv7() }];
    const { token, cookie } = visitors.csrf(request(), mine);
    expect(cookie).toBeUndefined();
    expect(visitors.isOwnForm(request(), mine, token)).toBe(true);
    expect(visitors.isOwnForm(request(), theirs, token)).toBe(false);
    expect(visitors.isOwnForm(request(), undefined, token)).toBe(false);
    expect(visitors.isOwnForm(request({ origin: "null" }), mine, token)).toBe(false);
    expect(visitors.isOwnForm(request({ "content-type": "text/plain" }), mine, token)).toBe(false);
    expect(visitors.isOwnForm(request(), mine, "")).toBe(false);
  });

  test("of a stranger is bound to a cookie that his browser alone holds, and to no session", () => {
    const first = visitors.csrf(request(), undefined);
    expect(first.cookie).toMatch(/^__Host-assay_form=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
    const cookie = first.cookie!.split(";")[0]!;
    const again = visitors.csrf(request({ cookie }), undefined);
    expect(again.cookie).toBeUndefined();
    for (const { token } of [first, again]) {
      expect(visitors.isOwnForm(request({ cookie }), undefined, token)).toBe(true);
      // Another site can send neither the cookie nor our origin.
      expect(visitors.isOwnForm(request(), undefined, token)).toBe(false);
      expect(visitors.isOwnForm(request({ cookie, origin: "https://evil.example" }), undefined, token)).toBe(false);
      expect(visitors.isOwnForm(request({ cookie: `__Host-assay_form=${"x".repeat(43)}` }), undefined, token)).toBe(
        false,
      );
    }
    const sessionId = Bun.randomUUIDv7();
    const { token } = visitors.csrf(request(), { sessionId });
    expect(visitors.isOwnForm(request({ cookie: `__Host-assay_form=session ${sessionId}` }), undefined, token)).toBe(
      false,
    );
  });
});
