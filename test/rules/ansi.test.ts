import { describe, expect, test } from "bun:test";
import { readAnsi, stripAnsi } from "../../src/rules/ansi.ts";

const plain = (text: string) => ({ text, colour: null, bold: false });

describe("what is written for terminals", () => {
  test("colours and weight are read, and end where they are taken back", () => {
    expect(readAnsi("a \x1b[31mred\x1b[0m b \x1b[1;32mgood\x1b[22m still\x1b[39m c \x1b[2mdim\x1b[22m")).toEqual([
      plain("a "),
      { text: "red", colour: "red", bold: false },
      plain(" b "),
      { text: "good", colour: "green", bold: true },
      { text: " still", colour: "green", bold: false },
      plain(" c "),
      { text: "dim", colour: "grey", bold: false },
    ]);
  });

  test("of the larger palettes only the usual colours are kept, and the numbers of others are not taken for colours", () => {
    expect(readAnsi("\x1b[38;5;9mred\x1b[38;5;200mpink\x1b[38;2;31;32;33mown\x1b[48;5;31mground")).toEqual([
      { text: "red", colour: "red", bold: false },
      plain("pinkownground"),
    ]);
  });

  test("whatever else steers a terminal is left out", () => {
    const text =
      "\x1b]0;title\x07a\x1b[2K\x1b[1Ab\x1b]8;;https://evil.example\x1b\\c\x1b]8;;\x1b\\\x1b(B\x1b=d\x9b31me";
    expect(readAnsi(text).map(({ text }) => text)).toEqual(["abcd", "e"]);
    expect(stripAnsi(text)).toBe("abcde");
    expect(stripAnsi("ends with \x1b")).toBe("ends with ");
  });

  test("commands whose first character a report could not hold are known by the rest", () => {
    expect(readAnsi("[31mred[39m \ufffd[1;32mgood\ufffd[0m arr[3] [m] [2024]")).toEqual([
      { text: "red", colour: "red", bold: false },
      plain(" "),
      { text: "good", colour: "green", bold: true },
      plain(" arr[3] [m] [2024]"),
    ]);
    expect(stripAnsi("[2mexpect([22m[31mreceived[39m)")).toBe("expect(received)");
  });

  test("a line that was written over shows what it ended with", () => {
    expect(readAnsi("10 %\r50 %\r100 %\r\nnext\r\nlast\r")).toEqual([plain("100 %\nnext\nlast")]);
  });

  test("a text of nothing but changes is plain after the first thousands", () => {
    const stretches = readAnsi("\x1b[31ma\x1b[32mb".repeat(20_000));
    expect(stretches.length).toBeLessThan(5_100);
    expect(stretches.map(({ text }) => text).join("")).toBe("ab".repeat(20_000));
  });
});
