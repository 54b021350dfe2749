/** Proxies of the environment are passed by: what is dialled is what was checked. A process of its own has the variables. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { certificate, serveSecurely } from "../../http/secure_server.ts";
import { createProxy, createReceiver } from "../../receiver.ts";

const SOURCE = join(import.meta.dir, "../../../src/http");

test("a request with a proxy in the environment goes to the address itself", async () => {
  const receiver = createReceiver({ status: 200, body: "direct" });
  using server = serveSecurely();
  const proxy = await createProxy();
  const script = `
    import { createAddressList } from ${JSON.stringify(join(SOURCE, "address.ts"))};
    import { createOutbound } from ${JSON.stringify(join(SOURCE, "outbound.ts"))};
    const { HTTP_RECEIVER, HTTPS_RECEIVER, CA } = process.env;
    const allow = createAddressList(["127.0.0.0/8"]);
    const outbound = createOutbound({ allow, resolve: async () => ["127.0.0.1"], ca: CA });
    for (const url of [HTTP_RECEIVER, HTTPS_RECEIVER])
      console.log((await outbound.request({ method: "POST", url, body: "x" })).text);`;
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
  const child = Bun.spawn([process.execPath, "-e", script], {
    env: {
      ...{ ...process.env, NO_PROXY: "", no_proxy: "" },
      ...Object.fromEntries(names.map((name) => [name, proxy.url])),
      HTTP_RECEIVER: `http://a.example:${new URL(receiver.url).port}/`,
      HTTPS_RECEIVER: `https://hooks.example.com:${server.port}/`,
      CA: await certificate(),
    },
  });
  expect(await child.stdout.text()).toBe(`direct\nsecure hooks.example.com:${server.port}\n`);
  expect(proxy.heads).toEqual([]);
});
