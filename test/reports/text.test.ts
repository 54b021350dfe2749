import { describe, expect, test } from "bun:test";
import { clean, createCutter, cut, decode, msFromSeconds, toLine, toMs } from "../../src/reports/text.ts";

const bytes = (...numbers: number[]) => new Uint8Array(numbers);

describe("decode", () => {
  test("a byte-order mark decides, and is not part of the text", () => {
    expect(decode(bytes(0xef, 0xbb, 0xbf, 0x61))).toBe("a");
    expect(decode(bytes(0xff, 0xfe, 0x3c, 0, 0xe9, 0))).toBe("<é");
    expect(decode(bytes(0xfe, 0xff, 0, 0x3c, 0, 0xe9))).toBe("<é");
  });

  test("UTF-16 is seen without a byte-order mark", () => {
    expect(decode(bytes(0x3c, 0, 0xe9, 0))).toBe("<é");
    expect(decode(bytes(0, 0x7b, 0, 0x7d))).toBe("{}");
  });

  test("the XML declaration names the encoding", () => {
    const declared = (encoding: string) =>
      Buffer.from(`<?xml version="1.0" encoding="${encoding}"?>\xe9\x80`, "latin1");
    expect(decode(declared("windows-1252"))).toEndWith("é€");
    expect(decode(declared("ISO-8859-1"))).toEndWith("é€");
    expect(decode(declared("iso-8859-2"))).toEndWith("é\x80");
    expect(() => decode(declared("klingon"))).toThrow('its encoding "klingon" is not known');
  });

  test("a declaration of UTF-16 in bytes that are UTF-8 is not believed", () => {
    expect(decode(Buffer.from('<?xml version="1.0" encoding="utf-16"?>é'))).toEndWith("é");
  });

  test("invalid UTF-8 becomes U+FFFD", () => {
    expect(decode(bytes(0x61, 0xff, 0x62))).toBe("a\ufffdb");
  });
});

describe("clean", () => {
  test("terminal colours and links vanish", () => {
    expect(clean("\x1b[1;31mred\x1b[0m \x1b]8;;https://a.example\x1b\\link\x1b]8;;\x07 \x9b32mgreen")).toBe(
      "red link green",
    );
  });

  test("an unterminated sequence does not eat what follows", () => {
    expect(clean("a\x1b]8;;https://a.example\nb")).toBe("a]8;;https://a.example\nb");
    expect(clean("a\x1b[31</failure>")).toBe("a[31</failure>");
  });

  test("NUL and lone surrogates become U+FFFD, other control characters vanish", () => {
    expect(clean("a\0b\ud800c\udc00d\x07e\x1ff\uffffg")).toBe("a\ufffdb\ufffdc\ufffddefg");
    expect(clean("tab\t line\n return\r 😀 \u202e")).toBe("tab\t line\n return\r 😀 \u202e");
  });
});

describe("cutting", () => {
  test("a surrogate pair is not split", () => {
    expect(cut("a😀b", 2)).toBe("a");
    expect(cut("a😀b", 3)).toBe("a😀");
  });

  test("each kind of text has its limit and one warning", () => {
    const cutter = createCutter();
    expect(cutter.cut("name", "x".repeat(1_000_000))).toHaveLength(1000);
    expect(cutter.cut("name", "y".repeat(1001))).toHaveLength(1000);
    expect(cutter.cut("name", "z".repeat(1000))).toHaveLength(1000);
    expect(Buffer.byteLength(cutter.cut("message", "€".repeat(65_536)))).toBe(65_535);
    expect(cutter.cut("stack", "s".repeat(65_536))).toHaveLength(65_536);
    expect(cutter.cut("output", "o".repeat(2_000_000))).toHaveLength(1_048_576);
    expect(cutter.cutOrNull("file", "")).toBeNull();
    expect(cutter.warnings()).toEqual([
      "Cut 2 names to 1,000 characters",
      "Cut 1 message to 64 KiB",
      "Cut 1 output to 1 MiB",
    ]);
  });

  test("at most fifty properties are kept, and a name twice is numbered", () => {
    const cutter = createCutter();
    const many = Array.from({ length: 60 }, (_, n): [string, string] => [`k${n}`, "v"]);
    expect(Object.keys(cutter.properties(many)!)).toHaveLength(50);
    expect(cutter.warnings()).toEqual(["Left out 10 properties: at most 50 of a test case are kept"]);
    expect(
      cutter.properties([
        ["a", "1"],
        ["a", "2"],
        ["a", "1"],
      ]),
    ).toEqual({ a: "1", "a 2": "2" });
    expect(cutter.properties([])).toBeNull();
  });

  test("a property called __proto__ is a property", () => {
    const properties = createCutter().properties([
      ["__proto__", "x"],
      ["toString", "y"],
    ])!;
    expect(Object.entries(properties)).toEqual([
      ["__proto__", "x"],
      ["toString", "y"],
    ]);
    expect(Object.getPrototypeOf(properties)).toBe(Object.prototype);
  });
});

describe("numbers", () => {
  test.each([
    ["1.5", 1500],
    ["0", 0],
    ["0.", 0],
    [" 0.25 ", 250],
    ["4.50611114501953e-05", 0],
    ["1,234.567", 1_234_567],
    ["1,234.5", 1_234_500],
    ["1,234,567", 1_234_567_000],
    ["22.2s", 22_200],
    ["0,05", 50],
    ["1.234,5", 1_234_500],
    ["", null],
    ["   ", null],
    ["NaN", null],
    ["Infinity", null],
    ["-345345", null],
    ["<<computed>>", null],
    ["999638317", null],
    [undefined, null],
    [`1${" ".repeat(1e6)}x`, null],
  ])("%p seconds are %p ms", (text, ms) => {
    expect(msFromSeconds(text)).toBe(ms);
  });

  test("what no clock shows is null, and so is a line that no file has", () => {
    expect([0.4, 1.6].map(toMs)).toEqual([0, 2]);
    for (const odd of [-1, 1e400, Number.NaN, 2 ** 53, "5", null]) expect([odd, toMs(odd)]).toEqual([odd, null]);
    expect(["3", 3].map(toLine)).toEqual([3, 3]);
    for (const odd of ["0", -1, 1.5, "x", "9".repeat(30), undefined]) expect([odd, toLine(odd)]).toEqual([odd, null]);
  });
});
