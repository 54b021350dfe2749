/** Requests to addresses of users: where they go, and how little is believed of what comes back. */

import { describe, expect, test } from "bun:test";
import { createAddressList } from "../../src/http/address.ts";
import { createOutbound, isReachable, literalAddress, OutboundError } from "../../src/http/outbound.ts";
import { createProxy, createReceiver } from "../receiver.ts";
import { certificate, serveSecurely } from "./secure_server.ts";

const nothing = createAddressList([]);
const loopback = createAddressList(["127.0.0.0/8"]);

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

describe("connections", () => {
  test("go to the address that was checked, never through the proxy, and end with their use or their time", async () => {
    const receiver = createReceiver();
    const port = Number(new URL(receiver.url).port);
    const proxy = await createProxy();
    const answers = [["127.0.0.1"], ["10.0.0.1"], ["127.0.0.1"]];
    const resolve = async () => answers.pop()!;
    const outbound = createOutbound({ allow: loopback, resolve, proxy: proxy.url, timeoutMs: 100 });
    const target = { host: "mail.example.com", port };
    const { socket, tls, address } = await outbound.connect(target, async (connection) => ({
      ...connection,
      address: connection.socket.remoteAddress,
    }));
    expect([address, tls, socket.destroyed]).toEqual([
      "127.0.0.1",
      { host: "mail.example.com", servername: "mail.example.com" },
      true,
    ]);
    const refused = await failure(outbound.connect(target, async () => "used"));
    expect(refused.message).toContain("requests do not go to private addresses");
    const late = await failure(outbound.connect(target, () => new Promise(() => {})));
    expect([late.message, late.isFinal]).toEqual(["No answer within 0.2 s", false]);
    expect([proxy.heads, answers]).toEqual([[], []]);
  });
});

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
    using server = serveSecurely();
    const outbound = createOutbound({ allow: loopback, resolve: async () => ["127.0.0.1"], ca: await certificate() });
    const get = (host: string) => outbound.request({ method: "GET", url: `https://${host}:${server.port}/` });
    expect((await get("hooks.example.com")).text).toBe(`secure hooks.example.com:${server.port}`);
    for (const host of ["other.example.com", "127.0.0.1"])
      expect((await failure(get(host))).message).toContain("The certificate is for another host");
  });

  /** A server whose answer goes on as long as anybody reads it. */
  const serveEndlessly = (bytes: number, pauseMs = 0) =>
    Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: () =>
        new Response(
          new ReadableStream({
            async pull(controller) {
              controller.enqueue(new Uint8Array(bytes).fill(65));
              if (pauseMs > 0) await Bun.sleep(pauseMs);
            },
          }),
        ),
    });

  test("an answer that drips, or a name that is never found, ends in time", async () => {
    using drip = serveEndlessly(1, 5);
    const outbound = createOutbound({ allow: loopback, timeoutMs: 100 });
    const get = { method: "GET", url: `http://127.0.0.1:${drip.port}/` } as const;
    expect((await failure(outbound.request(get))).message).toBe("No answer within 0.1 s");
    const lost = createOutbound({ allow: loopback, timeoutMs: 50, resolve: () => new Promise(() => {}) });
    const { message } = await failure(lost.request({ method: "GET", url: "http://a.example/" }));
    expect(message).toBe("No answer within 0.05 s");
  });

  test("of an endless answer only the beginning is read, and what is compressed stays so", async () => {
    using endless = serveEndlessly(65_536);
    const bomb = Bun.gzipSync(new Uint8Array(50_000_000));
    using bombing = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: () => new Response(bomb, { headers: { "content-encoding": "gzip" } }),
    });
    const outbound = createOutbound({ allow: loopback });
    const get = async (port: number, more: object = {}) =>
      (await outbound.request({ method: "GET", url: `http://127.0.0.1:${port}/`, ...more })).text;
    expect(await get(endless.port!)).toHaveLength(65_536);
    expect(await get(endless.port!, { maxBytes: 1_000_000 })).toHaveLength(1_000_000);
    expect((await get(bombing.port!)).length).toBeLessThanOrEqual(65_536);
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
  test("that were asked for get the address that was checked, with the name beside it", async () => {
    const receiver = createReceiver({ status: 200, body: "passed on" });
    using server = serveSecurely();
    const [{ port }, ca] = [server, await certificate()];
    const proxy = await createProxy();
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
