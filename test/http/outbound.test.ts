/** Requests to addresses of users: where they go, and how little is believed of what comes back. */

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createAddressList } from "../../src/http/address.ts";
import { createOutbound, isReachable, literalAddress, OutboundError } from "../../src/http/outbound.ts";
import { createProxy, createReceiver } from "../receiver.ts";

const nothing = createAddressList([]);
const loopback = createAddressList(["127.0.0.0/8"]);
const FIXTURES = join(import.meta.dir, "../fixtures");

const reachable = (url: string, allow = nothing) => {
  const address = literalAddress(new URL(url));
  return address !== undefined && isReachable(address, allow);
};

describe("addresses", () => {
  test.each([
    ...["127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.127.255.255", "169.254.169.254"],
    ...["172.16.0.1", "172.31.255.255", "192.0.0.1", "192.168.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"],
    ...["0x7f.1", "2130706433", "017700000001", "127.1"],
    ...["[::1]", "[::]", "[fc00::1]", "[fd12::1]", "[fe80::1]", "[ff02::1]", "[64:ff9b::a00:1]", "[2002:7f00:1::]"],
    ...["[::ffff:127.0.0.1]", "[::ffff:a00:1]", "[::127.0.0.1]", "[2001::1]", "[2001:db8::1]"],
    ...["[::ffff:0:127.0.0.1]", "[::ffff:0:a00:1]", "[64:ff9b:1::a00:1]"],
  ])("%s is private", (host) => {
    expect(reachable(`http://${host}/`)).toBe(false);
  });

  test.each(["8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "[2606:4700::1111]", "[::ffff:8.8.8.8]"])(
    "%s is not",
    (host) => {
      expect(reachable(`http://${host}/`)).toBe(true);
    },
  );

  test("private ones are reached when they are allowed, also within IPv6", () => {
    expect(reachable("http://127.0.0.1/", loopback)).toBe(true);
    expect(reachable("http://[::ffff:127.0.0.1]/", loopback)).toBe(true);
    expect(reachable("http://10.0.0.1/", loopback)).toBe(false);
    expect(reachable("http://[fd00::1]/", createAddressList(["fd00::/8"]))).toBe(true);
  });
});

const failure = async (work: Promise<unknown>): Promise<OutboundError> => {
  const error = await work.then(
    () => new Error("It did not fail"),
    (error) => error,
  );
  expect(error).toBeInstanceOf(OutboundError);
  return error;
};

describe("requests", () => {
  test("dial the address that was checked, whatever the name means by then", async () => {
    const receiver = createReceiver({ status: 200, body: "hello" });
    const { port } = new URL(receiver.url);
    const answers = [["93.184.216.34"], ["10.0.0.1"], ["127.0.0.1"]];
    const asked: string[] = [];
    const resolve = async (name: string) => {
      asked.push(name);
      return answers.pop()!;
    };
    const heard: unknown[] = [];
    const outbound = createOutbound({ allow: loopback, resolve, onPrivate: (...said) => heard.push(said) });
    const url = `http://hooks.example.com:${port}/x`;
    expect(await outbound.request({ method: "GET", url })).toMatchObject({ status: 200, text: "hello" });
    expect(receiver.requests[0]!.headers["host"]).toBe(`hooks.example.com:${port}`);
    const error = await failure(outbound.request({ method: "GET", url }));
    // Whoever gave the name reads this: the address is for the operator alone.
    expect([error.message, error.isFinal]).toEqual([
      "hooks.example.com: requests do not go to private addresses unless OUTBOUND_ALLOW names them",
      false,
    ]);
    expect(heard).toEqual([["hooks.example.com", ["10.0.0.1"]]]);
    expect(asked).toEqual(["hooks.example.com", "hooks.example.com"]);
  });

  test("of several addresses only one that may be reached is dialled", async () => {
    const receiver = createReceiver({ status: 200 });
    const { port } = new URL(receiver.url);
    const resolve = async () => ["10.0.0.1", "::1", "127.0.0.1"];
    const outbound = createOutbound({ allow: loopback, resolve });
    expect((await outbound.request({ method: "GET", url: `http://a.example:${port}/` })).status).toBe(200);
  });

  test("the certificate has to be that of the name, not of the address", async () => {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { key: Bun.file(join(FIXTURES, "tls_key.pem")), cert: Bun.file(join(FIXTURES, "tls_certificate.pem")) },
      fetch: () => new Response("secure"),
    });
    try {
      const ca = await Bun.file(join(FIXTURES, "tls_certificate.pem")).text();
      const outbound = createOutbound({ allow: loopback, resolve: async () => ["127.0.0.1"], ca });
      const get = (host: string) => outbound.request({ method: "GET", url: `https://${host}:${server.port}/` });
      expect((await get("hooks.example.com")).text).toBe("secure");
      expect((await failure(get("other.example.com"))).message).toContain("The certificate is for another host");
      expect((await failure(get("127.0.0.1"))).message).toContain("The certificate is for another host");
    } finally {
      await server.stop(true);
    }
  });

  test("an answer that drips, or a name that is never found, ends in time", async () => {
    const drip = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () =>
        new Response(
          new ReadableStream({
            async pull(controller) {
              controller.enqueue(new Uint8Array([65]));
              await Bun.sleep(5);
            },
          }),
        ),
    });
    try {
      const outbound = createOutbound({ allow: loopback, timeoutMs: 100 });
      const url = `http://127.0.0.1:${drip.port}/`;
      expect((await failure(outbound.request({ method: "GET", url }))).message).toBe("No answer within 0.1 s");
      const lost = createOutbound({ allow: loopback, timeoutMs: 50, resolve: () => new Promise(() => {}) });
      expect((await failure(lost.request({ method: "GET", url: "http://a.example/" }))).message).toBe(
        "No answer within 0.05 s",
      );
    } finally {
      await drip.stop(true);
    }
  });

  test("of an endless answer only the beginning is read, and what is compressed stays so", async () => {
    const endless = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) =>
        request.url.endsWith("/bomb")
          ? new Response(Bun.gzipSync(new Uint8Array(50_000_000)), { headers: { "content-encoding": "gzip" } })
          : new Response(
              new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(65)) }),
            ),
    });
    try {
      const outbound = createOutbound({ allow: loopback });
      const get = (path: string, maxBytes?: number) =>
        outbound.request({
          method: "GET",
          url: `http://127.0.0.1:${endless.port}${path}`,
          ...(maxBytes ? { maxBytes } : {}),
        });
      expect((await get("/")).text).toHaveLength(65_536);
      expect((await get("/", 1_000_000)).text).toHaveLength(1_000_000);
      expect((await get("/bomb")).text.length).toBeLessThanOrEqual(65_536);
    } finally {
      await endless.stop(true);
    }
  });

  test("an error does not quote the address, which may be a secret", async () => {
    const outbound = createOutbound({ allow: loopback, timeoutMs: 500 });
    for (const url of ["http://127.0.0.1:1/S3CRET?S3CRET", "http://nowhere.invalid/S3CRET"]) {
      const { message } = await failure(outbound.request({ method: "POST", url, body: "S3CRET" }));
      expect(message).not.toContain("S3CRET");
    }
    expect((await failure(outbound.request({ method: "GET", url: "file:///etc/passwd" }))).isFinal).toBe(true);
  });
});

describe("proxies", () => {
  const serveSecurely = async () => {
    const ca = await Bun.file(join(FIXTURES, "tls_certificate.pem")).text();
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { key: Bun.file(join(FIXTURES, "tls_key.pem")), cert: ca },
      fetch: (request) => new Response(`secure ${request.headers.get("host")}`),
    });
    return { ca, server, port: server.port };
  };

  test("of the environment are passed by: what is dialled is what was checked", async () => {
    const receiver = createReceiver({ status: 200, body: "direct" });
    const { ca, server, port } = await serveSecurely();
    const proxy = await createProxy();
    const script = `
      import { createAddressList } from ${JSON.stringify(join(import.meta.dir, "../../src/http/address.ts"))};
      import { createOutbound } from ${JSON.stringify(join(import.meta.dir, "../../src/http/outbound.ts"))};
      const { HTTP_RECEIVER, HTTPS_RECEIVER, CA } = process.env;
      const allow = createAddressList(["127.0.0.0/8"]);
      const outbound = createOutbound({ allow, resolve: async () => ["127.0.0.1"], ca: CA });
      for (const url of [HTTP_RECEIVER, HTTPS_RECEIVER])
        console.log((await outbound.request({ method: "POST", url, body: "x" })).text);`;
    const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    try {
      const child = Bun.spawn([process.execPath, "-e", script], {
        env: {
          ...process.env,
          NO_PROXY: "",
          no_proxy: "",
          ...Object.fromEntries(names.map((name) => [name, proxy.url])),
          HTTP_RECEIVER: `http://a.example:${new URL(receiver.url).port}/`,
          HTTPS_RECEIVER: `https://hooks.example.com:${port}/`,
          CA: ca,
        },
      });
      expect(await child.stdout.text()).toBe(`direct\nsecure hooks.example.com:${port}\n`);
      expect(proxy.heads).toEqual([]);
    } finally {
      await server.stop(true);
    }
  });

  test("that were asked for get the address that was checked, with the name beside it", async () => {
    const receiver = createReceiver({ status: 200, body: "passed on" });
    const { ca, server, port } = await serveSecurely();
    const proxy = await createProxy();
    try {
      const addresses: Record<string, string> = { "lost.example.com": "10.0.0.1" };
      const resolve = async (name: string) => [addresses[name] ?? "127.0.0.1"];
      const outbound = createOutbound({ allow: loopback, resolve, ca, proxy: proxy.url });
      const get = (url: string) => outbound.request({ method: "GET", url, headers: { Authorization: "Bearer own" } });
      const { port: plain } = new URL(receiver.url);

      expect((await get(`http://hooks.example.com:${plain}/x?y`)).text).toBe("passed on");
      expect(receiver.requests[0]!.headers).toMatchObject({
        host: `hooks.example.com:${plain}`,
        authorization: "Bearer own",
      });
      expect((await get(`https://hooks.example.com:${port}/`)).text).toBe(`secure hooks.example.com:${port}`);
      const credentials = `Basic ${btoa("operator:hunter2")}`;
      expect(proxy.heads.map((head) => head.split("\r\n")[0])).toEqual([
        `GET http://127.0.0.1:${plain}/x?y HTTP/1.1`,
        `CONNECT 127.0.0.1:${port} HTTP/1.1`,
      ]);
      for (const head of proxy.heads) expect(head).toContain(`Proxy-Authorization: ${credentials}`);
      // What is meant for the receiver is not said before the tunnel stands.
      expect(proxy.heads[1]).not.toContain("Bearer own");

      const { message } = await failure(get(`https://other.example.com:${port}/`));
      expect(message).toBe("The certificate is for another host: other.example.com through the proxy");
      expect(proxy.heads).toHaveLength(3);
      expect((await failure(get("http://lost.example.com/"))).message).toContain("do not go to private addresses");
      expect((await failure(get("http://10.0.0.1/"))).isFinal).toBe(true);
      expect(proxy.heads).toHaveLength(3);
    } finally {
      await server.stop(true);
    }
  });

  test("that refuse or are away are told from the receiver, and their password from nobody", async () => {
    const page = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 12\r\n\r\nhunter2 why?";
    const refusing = await createProxy(page);
    const resolve = async () => ["127.0.0.1"];
    for (const proxy of [refusing.url, "http://operator:hunter2@127.0.0.1:1", "http://operator:hunter2@proxy.invalid"])
      for (const url of ["http://hooks.example.com/", "https://hooks.example.com/"]) {
        const outbound = createOutbound({ allow: loopback, resolve, proxy, timeoutMs: 2_000 });
        const { message, isFinal } = await failure(outbound.request({ method: "GET", url }));
        expect(message).toEndWith(": hooks.example.com through the proxy");
        if (proxy === refusing.url) expect(message).toStartWith("The proxy refused the request");
        expect(message).not.toContain("hunter2");
        expect(isFinal).toBe(false);
      }
  });
});
