import { describe, expect, test } from "bun:test";
import { type Look, PLAIN_LOOK, readAnsiLines, stripAnsi } from "../../src/rules/ansi.ts";
import { nearestColour, rgbOf } from "../../src/rules/palette.ts";

/** The text of each stretch of a line with what of its look is not plain. */
const differences = (look: Look) =>
  Object.fromEntries(Object.entries(look).filter(([name, value]) => value !== PLAIN_LOOK[name as keyof Look]));
const read = (text: string) =>
  readAnsiLines(text)
    .flat()
    .map(({ text, look }) => [text, differences(look)]);
const textOf = (text: string) =>
  readAnsiLines(text)
    .map((line) => line.map(({ text }) => text).join(""))
    .join("\n");
const lookAfter = (parameters: string) => read(`\x1b[${parameters}mx`)[0]![1];

describe("text written for terminals", () => {
  test("colours and styles are read, and end where they are reset", () => {
    expect(read("a \x1b[31mred\x1b[0m b \x1b[1;32mgood\x1b[22m still\x1b[39m c \x1b[2mdim\x1b[22m")).toEqual([
      ["a ", {}],
      ["red", { foreground: 1 }],
      [" b ", {}],
      ["good", { foreground: 2, bold: true }],
      [" still", { foreground: 2 }],
      [" c ", {}],
      ["dim", { dim: true }],
    ]);
  });

  test.each([
    ["", {}],
    ["1;2;3;4;7;9", { bold: true, dim: true, italic: true, underline: true, inverse: true, strike: true }],
    ["1;2;3;4;7;9;22;23;24;27;29", {}],
    ["21", { underline: true }],
    ["31;1;", {}],
    [";32", { foreground: 2 }],
    ["37;40", { foreground: 7, background: 0 }],
    ["93;104", { foreground: 11, background: 12 }],
    ["31;41;39;49", {}],
    ["38;5;208", { foreground: 208 }],
    ["48;5;17;1", { background: 17, bold: true }],
    ["38;2;255;0;0", { foreground: 196 }],
    ["48;2;8;8;8;3", { background: 232, italic: true }],
    ["38:5:208", { foreground: 208 }],
    ["38:2:255:0:0", { foreground: 196 }],
    ["38:2::255:0:0", { foreground: 196 }],
    ["38:2::0:255:0;1", { foreground: 46, bold: true }],
    ["4:3", { underline: true }],
    ["4;4:0", {}],
    ["58;5;1", {}],
    ["58;2;31;32;33;1", { bold: true }],
    ["58:2::1:2:3;3", { italic: true }],
    ["38;5;256", {}],
    ["38;5", {}],
    ["38;2;1", {}],
    ["5;8;53;999", {}],
    [`31;${"0;".repeat(30)}0;1`, {}],
  ])("the parameters %p change the look", (parameters, look) => {
    expect(lookAfter(parameters)).toEqual(look);
  });

  test("a look goes on over the end of a line", () => {
    const [first, second, third] = readAnsiLines("\x1b[31mone\ntwo\x1b[0m\nthree");
    expect([first, second, third].map((line) => line![0]!.look.foreground)).toEqual([1, 1, null]);
  });

  test("everything else that steers a terminal is left out", () => {
    const text =
      "\x1b]0;title\x07a\x1b[2K\x1b[1Ab\x1b]8;;https://evil.example\x1b\\c\x1b]8;;\x1b\\\x1b(B\x1b=d\x9b31me";
    expect(read(text)).toEqual([
      ["abcd", {}],
      ["e", { foreground: 1 }],
    ]);
    expect(stripAnsi(text)).toBe("abcde");
    expect(stripAnsi("ends with \x1b")).toBe("ends with ");
  });

  test("commands whose first character a report could not hold are known by the rest", () => {
    expect(read("[31mred[39m \ufffd[1;38;2;0;255;0mgood\ufffd[0m arr[3] [m] [2024] [12:30m")).toEqual([
      ["red", { foreground: 1 }],
      [" ", {}],
      ["good", { foreground: 46, bold: true }],
      [" arr[3] [m] [2024] [12:30m", {}],
    ]);
    expect(stripAnsi("[2mexpect([22m[31mreceived[39m)")).toBe("expect(received)");
  });

  test("a line that was written over shows what it ended with", () => {
    expect(textOf("10 %\r50 %\r100 %\r\nnext\r\nlast\r")).toBe("100 %\nnext\nlast");
    expect(read("\x1b[31mred\n1 %\x1b[0m\r2 %")).toEqual([
      ["red", { foreground: 1 }],
      ["2 %", {}],
    ]);
  });

  test("a line of nothing but changes is plain after the first hundreds, and the next line has its colours", () => {
    const [picture, next] = readAnsiLines(`${"\x1b[31ma\x1b[32mb".repeat(20_000)}\n\x1b[33mc`);
    expect(picture!.length).toBeLessThan(510);
    expect(picture!.map(({ text }) => text).join("")).toBe("ab".repeat(20_000));
    expect(next![0]!.look.foreground).toBe(3);
  });

  test("a colour of 24 bits becomes the nearest of the palette", () => {
    for (let colour = 16; colour < 256; colour++) expect(rgbOf(nearestColour(rgbOf(colour)))).toEqual(rgbOf(colour));
    expect(nearestColour([250, 130, 5])).toBe(208);
    expect(nearestColour([0, 0, 0])).toBe(16);
    expect(nearestColour([120, 118, 119])).toBe(243);
  });
});
