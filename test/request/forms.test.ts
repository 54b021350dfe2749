/** Forms that arrive, that are too large, and that drip, on a real server. */

import { afterAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { createFormBudget, FORM_LIMITS } from "../../src/http/form_budget.ts";
import { Problem } from "../../src/http/problem.ts";
import { createFormReader } from "../../src/request/forms.ts";
import { until } from "../harness.ts";

function serve(limits: Parameters<typeof createFormBudget>[0] = FORM_LIMITS) {
  const budget = createFormBudget(limits);
  const readForm = createFormReader(budget);
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const accountId = request.headers.get("x-account") ?? undefined;
      try {
        return Response.json((await readForm(request, { accountId, address: () => "192.0.2.1" })) ?? null);
      } catch (error) {
        if (error instanceof Problem)
          return Response.json(error.body, { status: error.status, headers: error.headers });
        throw error;
      }
    },
  });
  afterAll(() => server.stop(true));
  const post = (body: string, headers: Record<string, string> = {}) =>
    fetch(server.url, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body,
    });
  return { budget, server, post };
}

/** A client that announces a form and sends only its beginning; what it is answered. */
function drip(port: number, headers = "") {
  const socket = connect(port, "127.0.0.1");
  const heard = { text: "", isOver: false };
  socket.on("data", (data) => (heard.text += String(data)));
  for (const event of ["close", "error"]) socket.on(event, () => (heard.isOver = true));
  socket.write(
    `POST / HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 30000\r\n\r\na=1`,
  );
  afterAll(() => void socket.destroy());
  return heard;
}

test("a form is read, and 32 KiB are enough for a stranger, 1 MiB for somebody who is signed in", async () => {
  const { budget, post } = serve();
  expect(await (await post("a=1&b=%20x")).json()).toEqual({ a: "1", b: " x" });
  const large = `a=${"x".repeat(40_000)}`;
  const refused = await post(large);
  expect([refused.status, ((await refused.json()) as { error: { message: string } }).error.message]).toEqual([
    400,
    "Body too large: at most 32 KiB",
  ]);
  expect((await post(large, { "x-account": "ada" })).status).toBe(200);
  expect((await post(`a=${"x".repeat(1_048_576)}`, { "x-account": "ada" })).status).toBe(400);
  expect(await (await post("{}", { "content-type": "application/json" })).json()).toBeNull();
  expect(budget.held()).toBe(0);
});

test("forms that drip are refused as others come, and hold nothing afterwards", async () => {
  const limits = { maxBytes: 32_768, maxSeconds: 15, totalBytes: 4 * 32_768, share: 1 / 2 };
  const { budget, server, post } = serve({ public: limits, signedIn: limits });
  const drips: ReturnType<typeof drip>[] = [];
  for (let count = 0; count < 10; count++) {
    drips.push(drip(server.port!));
    await until(() => budget.held() > 0);
  }
  await until(() => drips.filter(({ text }) => text.includes(" 429 ")).length >= 8);
  expect(budget.held()).toBeLessThanOrEqual(limits.totalBytes * limits.share);
  expect(drips.find(({ text }) => text.includes(" 429 "))!.text).toContain("Retry-After: 5");
  // Neither a stranger nor somebody who is signed in is kept from sending his.
  expect(await (await post("a=1")).json()).toEqual({ a: "1" });
  expect(await (await post("a=1", { "x-account": "ada" })).json()).toEqual({ a: "1" });
});

test("a form that takes too long is refused, also where nothing comes any more", async () => {
  const limits = { ...FORM_LIMITS.public, maxSeconds: 0.05 };
  const { budget, server } = serve({ public: limits, signedIn: limits });
  const dripping = drip(server.port!);
  await until(() => dripping.text.includes(" 400 "));
  expect(dripping.text).toContain("The body took longer than");
  await until(() => dripping.isOver);
  expect(budget.held()).toBe(0);
});
