/** What is hidden: every writing of every secret, wherever the output is cut into pieces, and nothing else. */

import { describe, expect, test } from "bun:test";
import { createMask, createMaskCache, MaskError } from "../../src/runner/mask.ts";
import { isFull } from "../depth.ts";
import { createRandom } from "../random.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** As a program prints it, cut at these places. */
function throughStream(values: readonly string[], text: string, cuts: readonly number[]): string {
  const { push, end } = createMask(values).stream();
  const bytes = encoder.encode(text);
  const places = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  const parts = places.slice(1).map((to, at) => push(bytes.slice(places[at], to)));
  return decoder.decode(Buffer.concat([...parts, end()]));
}

describe("a secret", () => {
  const secret = `p"ä<s/s&w'ö rd+`;
  const base64 = (before: string, after = "") => Buffer.from(`${before}${secret}${after}`).toString("base64");
  test.each([
    ["as it is", secret],
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    ["in JSON of ASCII", `p\\"\\u00e4<s/s&w'\\u00f6 rd+`],
    ["in JSON for HTML", `p\\"ä\\u003cs/s\\u0026w'ö rd+`],
    ["in JSON with escaped slashes", `p\\"ä<s\\/s&w'ö rd+`],
    ["in a URI", encodeURIComponent(secret)],
    ["in a URI, lower case", encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase())],
    ["in a form", new URLSearchParams([["", secret]]).toString().slice(1)],
    ["in XML", "p&quot;ä&lt;s/s&amp;w&apos;ö rd+"],
    ["in the XML of Go", "p&#34;ä&lt;s/s&amp;w&#39;ö rd+"],
    ["in the text of XML", `p"ä&lt;s/s&amp;w'ö rd+`],
  ])("is hidden %s", (_, written) => {
    expect(createMask([secret]).text(`before ${written} after`)).toBe("before *** after");
  });

  test("is hidden in JSON within JSON, whichever of both wrote it in its own way", () => {
    const secret = `p"ä\\s/\n<ö>&`;
    const ascii = (json: string) =>
      json.replace(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const html = (json: string) =>
      json.replace(/[<>&]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const slashes = (json: string) => json.replaceAll("/", "\\/");
    const writers = [JSON.stringify, ...[ascii, html, slashes].map((of) => (text: string) => of(JSON.stringify(text)))];
    for (const inner of writers)
      for (const outer of writers) {
        const written = outer(`{"token":${inner(secret)}}`);
        expect(createMask([secret]).text(written)).toBe(outer('{"token":"***"}'));
      }
    const lines = 'first "line"\nsecond "line"';
    expect(createMask([lines]).text(JSON.stringify(JSON.stringify({ lines })))).toBe('"{\\"lines\\":\\"***\\"}"');
  });

  test("is hidden in base64, whatever stands before it and after it", () => {
    for (const before of ["", "u", "us", "use", "user:"])
      for (const after of ["", "x", "xy", "xyz"]) {
        const written = base64(before, after);
        const inner = Buffer.from(secret).toString("base64").slice(4, 12);
        const masked = createMask([secret]).text(`Basic ${written}!`);
        expect(masked).toContain("***");
        // What is left of it are the characters that it shares with what stands around it.
        expect(masked.length).toBeLessThan("Basic !".length + before.length * 2 + after.length * 2 + 3 + 6);
        expect(masked).not.toContain(inner);
        expect(createMask([secret]).text(written.replaceAll("+", "-").replaceAll("/", "_"))).toContain("***");
      }
  });

  test("is hidden in hexadecimal, whatever stands between the bytes", () => {
    const hex = Buffer.from(secret).toString("hex");
    const bytes = hex.match(/../g)!;
    for (const written of [hex, hex.toUpperCase(), bytes.join(" "), bytes.join(":"), bytes.join(" ").toUpperCase()])
      expect(createMask([secret]).text(`key=${written};`)).toBe("key=***;");
  });

  test("is hidden in encoded text that is wrapped, wherever the lines end", () => {
    const mask = createMask([secret]);
    const wrap = (text: string, width: number, lineBreak: string) =>
      text.match(new RegExp(`.{1,${width}}`, "g"))!.join(lineBreak);
    for (let before = 0; before < 90; before++) {
      const data = Buffer.from(`${"x".repeat(before)}${secret}${"y".repeat(60)}`);
      for (const [text, width] of [
        ...[60, 64, 76].map((width) => [data.toString("base64"), width] as const),
        [data.toString("hex"), 60] as const,
      ])
        for (const lineBreak of ["\n", "\r\n", "\\n", "\n  "]) {
          const masked = mask.text(`data: ${wrap(text, width, lineBreak)}\n`);
          expect(masked.match(/\*\*\*/g)).toHaveLength(1);
          const left = masked.slice(6).replaceAll("***", "").replaceAll("\\n", "").replace(/\s/g, "");
          // Base64 shares a character with the text before and one with the text behind.
          const ofSecret = (Buffer.byteLength(secret) / data.length) * text.length;
          expect(text.length - left.length).toBeGreaterThan(ofSecret - 4);
        }
    }
  });

  test("is hidden as printf %q and set -x of bash print it", () => {
    const every = Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at)).join("");
    const secrets = [`~${every} ä`, `#${every}`, `a=~b:~c'd e`, "tab\there \x01'\\ä", "two\nlines of it"];
    for (const secret of secrets)
      for (const locale of ["C", "C.UTF-8"])
        for (const [before, after] of [
          ["", ""],
          ["x", "y"],
          ["k=", " 1"],
          ["\x02", "'"],
        ]) {
          const word = `${before}${secret}${after}`;
          const script = 'printf "%q\\n" "$1"; set -x; : "$1"';
          const { stdout, stderr } = Bun.spawnSync(["bash", "-c", script, "bash", word], { env: { LC_ALL: locale } });
          for (const written of [stdout, stderr].map((output) => output.toString())) {
            const masked = createMask([secret]).text(written);
            expect(masked).toContain("***");
            expect(masked.length).toBeLessThan(30);
          }
        }
  });

  test("is hidden as declare -p of bash prints it", () => {
    for (const secret of ['pa$$word`x`"y"\\z', "tab\there \x01'\\ä", "two\n$lines of it"]) {
      const { stdout } = Bun.spawnSync(["bash", "-c", 'W="x$1"; declare -p W', "bash", secret]);
      expect(createMask([secret]).text(stdout.toString())).toMatch(/^declare -- W=\$?["']x\*\*\*["']\n$/);
    }
  });

  test("of several lines is hidden line by line, and lines that are short or empty are not", () => {
    const key = "-----BEGIN KEY-----\n  abcdefgh\r\n\n        \nxy\n-----END KEY-----\n";
    const text = createMask([key]).text(`${key}|abcdefgh|xy|        |-----END KEY-----|${JSON.stringify(key)}`);
    expect(text).toBe(`***|***|xy|        |***|"***"`);
  });

  test("of less than six characters is not hidden: it would black out the log", () => {
    const text = "a 12345 b true c";
    expect(createMask(["a", "12345", "true", ""]).text(text)).toBe(text);
    expect(createMask(["123456"]).text("1234567")).toBe("***7");
  });

  test("of several lines hides none of them that is short or monotonous, but the whole", () => {
    const lines = ["users:", "        ", "----------", "- - - - -", "token: 8f14e45fceea"];
    const mask = createMask([lines.join("\n")]);
    expect(mask.text(lines.join("|"))).toBe("users:|        |----------|- - - - -|***");
    expect(mask.text(lines.join("\n"))).toBe("***");
  });

  test("is hidden without the white space around it, however short the rest is", () => {
    expect(createMask(["secret7\n"]).text("is secret7!")).toBe("is ***!");
    expect(createMask(["          "]).text("a          b")).toBe("a          b");
  });

  test("that overlaps another one is hidden with it", () => {
    expect(createMask(["abcdefgh", "efghijkl"]).text("x abcdefghijkl y")).toBe("x *** y");
    expect(createMask(["abcdef", "abcdefghi"]).text("abcdefghi abcdefgx")).toBe("*** ***gx");
  });

  test("is told from what only begins like it, which comes as soon as that is known", () => {
    const { push, end } = createMask(["secret-token"]).stream();
    const say = (text: string) => decoder.decode(push(encoder.encode(text)));
    expect([say("no "), say("sec"), say("ond "), say("Password: "), say("secret-"), say("token"), say(" sec")]).toEqual(
      [...["no ", "", "second ", "Password: ", "", "***", " "]],
    );
    expect(decoder.decode(end())).toBe("sec");
  });
});

test("what takes more memory than there is room for is refused, and before that only rare forms are left out", () => {
  const random = createRandom(3);
  const large = (length: number) => Array.from({ length }, () => String.fromCharCode(random.integer(33, 126))).join("");
  const secret = large(65_536);
  const masks = [[secret], Array.from({ length: 10 }, () => large(65_536))].map(createMask);
  expect(masks.map(({ hidesRareForms }) => hidesRareForms)).toEqual([true, false]);
  expect(masks[0]!.text(`a ${JSON.stringify(secret)} b`)).toBe('a "***" b');
  expect(() => createMask(Array.from({ length: 60 }, () => large(65_536)))).toThrow(MaskError);
});

test("a kubeconfig as a secret does not slow down a large report of indented JSON", async () => {
  const users = Array.from({ length: 60 }, (_, at) => `    - name: user-${at}\n      token: ${"x".repeat(20)}${at}`);
  const kubeconfig = ["apiVersion: v1", "kind: Config", "users:", ...users].join("\n");
  const json = JSON.stringify(
    Array.from({ length: 60_000 }, (_, at) => ({ name: `test ${at}`, ok: true })),
    null,
    16,
  );
  const text = `${json}\n${kubeconfig}\n`;
  expect(text.length).toBeGreaterThan(5_000_000);
  expect(decoder.decode(await createMask([kubeconfig]).bytes(encoder.encode(text)))).toBe(`${json}\n***\n`);
});

test("tasks with the same secrets share a mask", () => {
  const maskFor = createMaskCache();
  const mask = maskFor(["a secret token"]);
  expect(maskFor(["a secret token"])).toBe(mask);
  expect(maskFor(["another token"])).not.toBe(mask);
  expect(maskFor(["another token"]).text("a secret token, another token")).toBe("a secret token, ***");
});

test("others go on while a large text is masked", async () => {
  let turns = 0;
  const count = setInterval(() => turns++, 0);
  const text = "an ordinary line of a report\n".repeat(200_000);
  const masked = await createMask(["a secret token"]).bytes(encoder.encode(text));
  clearInterval(count);
  expect(decoder.decode(masked)).toBe(text);
  expect(turns).toBeGreaterThan(0);
});

test("bytes that are no text go through as they are", async () => {
  const bytes = Uint8Array.from({ length: 4_096 }, (_, at) => (at * 7) % 256);
  expect(new Uint8Array(await createMask(["abcdefgh"]).bytes(bytes))).toEqual(bytes);
  expect(await createMask([]).bytes(bytes)).toBe(bytes);
});

test("wherever the output is cut, what comes out is the same and holds no secret", () => {
  const { chance, integer, pick } = createRandom(7);
  const below = (limit: number) => integer(0, limit - 1);
  const letters = ["a", "b", "ab", "ä", "€", "😀", "\n", " ", '"', "<", "/"];
  const word = (length: number) => Array.from({ length }, () => pick(letters)).join("");
  for (let round = 0; round < (isFull ? 400 : 100); round++) {
    const secrets = Array.from({ length: 1 + below(4) }, () => word(1 + below(12)));
    const writings = [
      (secret: string) => secret,
      (secret: string) => Buffer.from(word(below(3)) + secret).toString("base64"),
      (secret: string) => JSON.stringify(secret),
      (secret: string) => encodeURIComponent(secret),
    ];
    const text = Array.from({ length: 12 }, () => (chance(0.5) ? word(below(10)) : pick(writings)(pick(secrets)))).join(
      "",
    );
    const length = encoder.encode(text).length;
    const whole = createMask(secrets).text(text);
    const cuts = Array.from({ length: below(20) }, () => below(length + 1));
    expect(throughStream(secrets, text, cuts)).toBe(whole);
    expect(
      throughStream(
        secrets,
        text,
        Array.from({ length }, (_, at) => at),
      ),
    ).toBe(whole);
    for (const secret of secrets.filter((secret) => secret.trim().length >= 6)) expect(whole).not.toContain(secret);
    if (secrets.every((secret) => secret.length < 6)) expect(whole).toBe(text);
  }
});
