/** What is hidden: the usual forms of every secret, wherever the text is cut into chunks, and nothing else. */

import { describe, expect, test } from "bun:test";
import { createMask } from "../../src/secrets/mask.ts";
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

const base64Of = (text: string) => Buffer.from(text).toString("base64");

describe("a secret", () => {
  const secret = `p"ä<s/s&w'ö rd+`;
  test.each([
    ["as it is", secret],
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    ["in JSON for HTML", `p\\"ä\\u003cs/s\\u0026w'ö rd+`],
    ["in JSON of Python", `p\\"\\u00e4<s/s&w'\\u00f6 rd+`],
    ["in JSON of .NET", `p\\u0022\\u00E4\\u003Cs/s\\u0026w\\u0027\\u00F6 rd\\u002B`],
    ["in JSON of Ruby on Rails", `p\\"\\u00e4\\u003cs/s\\u0026w\\u0027\\u00f6 rd+`],
    ["in JSON with escaped slashes", `p\\"ä<s\\/s&w'ö rd+`],
    ["in a URL", encodeURIComponent(secret)],
    ["in a form", encodeURIComponent(secret).replaceAll("%20", "+")],
    ["in JSON in JSON", JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)],
    ["in a path of a URL", "p%22%C3%A4%3Cs/s%26w%27%C3%B6%20rd%2B"],
    ["in small codes of a URL", "p%22%c3%a4%3cs%2fs%26w%27%c3%b6%20rd%2b"],
    ["by set -x of a shell", `p"ä<s/s&w'\\''ö rd+`],
    ["by printf %q", `p\\"ä\\<s/s\\&w\\'ö\\ rd+`],
    ["by declare -p", `p\\"ä<s/s&w'ö rd+`],
    ["by repr of Python", `p"ä<s/s&w\\'ö rd+`],
    ["in hex", Buffer.from(secret).toString("hex")],
    ["in XML", "p&quot;ä&lt;s/s&amp;w'ö rd+"],
    ["in the text of XML", `p"ä&lt;s/s&amp;w'ö rd+`],
    ["in HTML", Bun.escapeHTML(secret)],
    ["in XML and HTML of Go", "p&#34;ä&lt;s/s&amp;w&#39;ö rd+"],
    ["in HTML of Ruby", "p&quot;ä&lt;s/s&amp;w&#39;ö rd+"],
    ["in HTML of PHP", "p&quot;ä&lt;s/s&amp;w&#039;ö rd+"],
    ["in XML of Java", "p&quot;ä&lt;s/s&amp;w&apos;ö rd+"],
    ["in HTML of mustache", "p&quot;ä&lt;s&#x2F;s&amp;w&#39;ö rd+"],
  ])("is hidden %s", (_, written) => {
    expect(createMask([secret]).text(`before ${written} after`)).toBe("before *** after");
  });

  test("of several lines is hidden in an attribute of XML", () => {
    const lines = `user="a1"\npass='b2&c'`;
    for (const end of ["&#xA;", "&#10;"]) {
      const written = `user=&quot;a1&quot;${end}pass=&apos;b2&amp;c&apos;`;
      expect(createMask([lines]).text(`<x y="${written}"/>`)).toBe(`<x y="***"/>`);
    }
  });

  test("is hidden in the lines of base64 and xxd -p", () => {
    const long = Array.from({ length: 90 }, (_, at) => String.fromCharCode(33 + ((at * 37) % 90))).join("");
    for (const [encoded, width] of [
      [base64Of(long), 76],
      [Buffer.from(long).toString("hex"), 60],
    ] as const) {
      const written = encoded.replace(new RegExp(`.{${width}}`, "g"), "$&\n");
      expect(createMask([long]).text(written).replaceAll("\n", "")).toMatch(/^\*+$/);
    }
  });

  test("is hidden in base64, whatever stands before it and after it", () => {
    for (const before of ["", "u", "us", "use", "user:"])
      for (const after of ["", "x", "xy", "xyz"]) {
        const written = base64Of(`${before}${secret}${after}`);
        for (const spelled of [written, written.replaceAll("+", "-").replaceAll("/", "_")]) {
          const masked = createMask([secret]).text(`Basic ${spelled}!`);
          expect(masked).toContain("***");
          // What is left are the characters that it shares with what stands around it.
          const around = base64Of(before).length + base64Of(after).length;
          expect(masked.length).toBeLessThanOrEqual("Basic ***!".length + around + 2);
        }
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

  test("that overlaps or touches another one is hidden with it", () => {
    expect(createMask(["abcdefgh", "efghijkl"]).text("x abcdefghijkl y")).toBe("x *** y");
    expect(createMask(["abcdef", "abcdefghi"]).text("abcdefghi abcdefgx")).toBe("*** ***gx");
    expect(createMask(["abcdef"]).text("abcdefabcdef, abcdef")).toBe("***, ***");
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

describe("a secret of 64 KiB", () => {
  const { integer } = createRandom(3);
  const draw = (length: number) => String.fromCharCode(...Array.from({ length }, () => integer(33, 126)));
  const secret = draw(65_000);

  test.each([
    ["as it is", secret],
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    ["in base64", base64Of(secret)],
  ])("is hidden %s, in one piece", (_, written) => {
    expect(createMask([secret]).text(`a ${written} b`)).toBe("a *** b");
  });

  test("that is cut off is hidden up to its last whole piece", () => {
    const masked = createMask([secret]).text(secret.slice(0, 10_000));
    expect(masked).toStartWith("***");
    expect(masked.length).toBeLessThan(3 + 32);
  });

  test.skipIf(!isFull)("is hidden line by line", () => {
    const lines = Array.from({ length: 2_000 }, () => draw(31));
    expect(createMask([lines.join("\n")]).text(lines.toReversed().join(" "))).toBe(lines.fill("***").join(" "));
  });
});

describe("a secret that colours split", () => {
  const secret = "8f14e45f/ceea167a";
  test.each([
    ["of grep", "\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"],
    ["of 24 bits", "\x1b[38;2;255;200;100m", "\x1b[0m"],
    ["of tput", "\x1b[1m", "\x1b(B\x1b[m"],
    ["of one character", "\u009b31m", "\u009bm"],
    ["in a link", "\x1b]8;;https://example.com/\x1b\\", "\x1b]8;;\x07"],
    ["in JSON", "\\u001b[31m", "\\u001B[39m"],
    ["of a shell's source", "\\033[31m", "\\e[0m"],
    ["in XML", "&#27;[31m", "&#x1B;[0m"],
    ["in XML of pytest", "#x1B[31m", "#x1B[0m"],
    ["in XML that lost the character", "[31m", "\ufffd[0m"],
  ])("is hidden %s, wherever the text is cut", (_, on, off) => {
    const text = `a ${secret.slice(0, 5)}${on}${secret.slice(5, 12)}${off}${secret.slice(12)} b`;
    const whole = `a ***${on}${off} b`;
    expect(createMask([secret]).text(text)).toBe(whole);
    const places = Array.from({ length: encoder.encode(text).length + 1 }, (_, at) => at);
    for (const at of places) expect(throughStream([secret], text, [at])).toBe(whole);
    expect(throughStream([secret], text, places)).toBe(whole);
  });

  test("is hidden with a colour at each character, and inside a sequence", () => {
    const painted = [...secret].map((char, at) => `\x1b[38;5;${at}m${char}\x1b[0m`).join("");
    expect(
      createMask([secret])
        .text(painted)
        .replace(/\x1b\[[\d;]*m/g, ""),
    ).toBe("***");
    expect(createMask([secret]).text(`\x1b]8;;http://x/${secret}\x07link`)).toBe("\x1b]8;;http://x/***\x07link");
    const long = "a longer secret of more than thirty-two bytes, in two pieces";
    expect(createMask([long]).text(long.replace("thirty", "\x1b[1mthirty\x1b[0m"))).toBe("***\x1b[1m\x1b[0m");
  });

  test("does not hide what only looks like it, and colours alone stay", () => {
    const text = "\x1b[31m8f14e45f\x1b[0m/ceea167b, [1m], \x1b]0;title without an end\nnext";
    expect(createMask([secret]).text(text)).toBe(text);
    const { push, end } = createMask([secret]).stream();
    expect(decoder.decode(push(encoder.encode("8f14e\x1b[1")))).toBe("");
    expect(decoder.decode(push(encoder.encode("mx")))).toBe("8f14e\x1b[1mx");
    // A sequence without an end keeps no unlimited text.
    expect(push(encoder.encode(`8f14e${"\x1b[1m".repeat(10_000)}`)).length).toBeGreaterThan(35_000);
    expect(end().length).toBeLessThan(5_000);
  });
});

test("white space within a long secret is not hidden elsewhere", () => {
  const secret = `{\n${" ".repeat(100)}"token": "8f14e45fceea167a5a36dedd4bea2543",\n${" ".repeat(100)}"user": "shop" }`;
  const mask = createMask([secret]);
  expect(mask.text(" ".repeat(200))).toBe(" ".repeat(200));
  expect(mask.text(`x ${secret} y`)).not.toContain("8f14");
  expect(createMask(["-".repeat(100)]).text(`x${"-".repeat(100)}y`)).toBe("x***y");
});

test.skipIf(!isFull)("a kubeconfig as a secret does not slow down a large report of indented JSON", async () => {
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

test("a text that is cut at any place, or at every place, is hidden like the whole text", () => {
  const long = "a longer secret of more than thirty-two bytes, ä and €";
  const secrets = ["abcdef", "abcdefghi", 'p"w<d&x/', "two\nlines of it", long];
  const forms = [
    ...["abcdef", "abcdefghi", "abcdefabcdef", "abcdefgx", long, long.slice(0, 40), JSON.stringify(secrets)],
    ...[base64Of(`user:${secrets[2]}`), base64Of(long), encodeURIComponent(long), "two\r\nlines of it", "ab"],
  ];
  const text = forms.join(" ");
  const whole = createMask(secrets).text(text);
  expect(whole.match(/\*\*\*/g)!.length).toBeGreaterThan(12);
  expect(whole).not.toMatch(/abcdef|p\\"w|lines of|longer secret/);
  const places = Array.from({ length: encoder.encode(text).length + 1 }, (_, at) => at);
  for (const at of places) expect(throughStream(secrets, text, [at])).toBe(whole);
  expect(throughStream(secrets, text, places)).toBe(whole);
});

test("random secrets are in no text that is masked, and cutting the text anywhere changes nothing", () => {
  const { chance, integer, pick } = createRandom(7);
  const below = (limit: number) => integer(0, limit - 1);
  const letters = ["a", "b", "ab", "ä", "€", "😀", "\n", " ", '"', "<", "/"];
  const word = (length: number) => Array.from({ length }, () => pick(letters)).join("");
  for (let round = 0; round < (isFull ? 400 : 50); round++) {
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
