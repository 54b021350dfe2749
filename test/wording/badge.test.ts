import { expect, test } from "bun:test";
import { drawBadge, widthOf } from "../../src/wording/badge.ts";

/** What an XML parser makes of it; a broken one has no texts. */
function read(svg: string) {
  const texts: string[] = [];
  const places: { x: number; space: number }[] = [];
  let title = "";
  new HTMLRewriter()
    .on("text", {
      element: (element) => {
        places.push({ x: Number(element.getAttribute("x")), space: Number(element.getAttribute("textLength")) });
        texts.push("");
      },
      text: ({ text }) => void (texts[texts.length - 1] += text),
    })
    .on("title", { text: ({ text }) => void (title += text) })
    .transform(svg);
  const width = Number(/<svg[^>]* width="(\d+)"/.exec(svg)![1]);
  return { texts, places, title, width };
}

const badge = { label: "tests", message: "1,204 passed", tone: "good", title: "main: 1,204 passed" } as const;

test("holds its two words, each in its place, and says all of it in its title", () => {
  const { texts, places, title, width } = read(drawBadge(badge));
  expect(texts).toEqual(["tests", "1,204 passed"]);
  expect(title).toBe("main: 1,204 passed");
  const [label, message] = places;
  expect(label!.x - label!.space / 2).toBe(6);
  expect(message!.x - message!.space / 2).toBe(label!.space + 12 + 6);
  expect(message!.x + message!.space / 2).toBe(width - 6);
});

test("loads nothing, and tells good from bad by more than its colour", () => {
  const [good, bad] = [drawBadge(badge), drawBadge({ ...badge, message: "failed", tone: "bad" })];
  for (const svg of [good, bad]) expect(svg).not.toMatch(/href|url\((?!#)|<script|<style|<image|<foreignObject/i);
  expect(bad).toContain(">failed<");
  expect(good).not.toContain("#b9252b");
});

test("text is as wide as its characters", () => {
  expect(widthOf("")).toBe(0);
  expect(widthOf("iiiiiiiiii")).toBeLessThan(widthOf("mmmmmmmmmm") / 2);
  // As browsers measure it in Verdana and DejaVu Sans at 11 px.
  expect(Math.abs(widthOf("tests") - 28)).toBeLessThan(3);
  expect(Math.abs(widthOf("1,204 passed") - 76)).toBeLessThan(4);
  expect(widthOf("漢字")).toBeGreaterThan(20);
});

test("hostile words are words, and long ones are cut", () => {
  const branch = `"><script>alert(1)</script>&\u202e\ufffe\u0000`;
  const svg = drawBadge({ ...badge, label: branch, title: branch });
  expect(svg).not.toContain("<script");
  // oxlint-disable-next-line no-control-regex
  expect(svg).not.toMatch(/[\u202e\ufffe\x00]/);
  const [label] = read(drawBadge({ ...badge, label: "x".repeat(500) })).texts;
  expect([...label!]).toHaveLength(40);
  expect(label!.endsWith("…")).toBe(true);
});
