import { crc32 } from "node:zlib";
import { describe, expect, test } from "bun:test";
import { findFormat } from "../../src/reports/read.ts";
import { fixtureBytes, inShort, read, readWith, silentGreens } from "./reading.ts";

const number = (value: number): Buffer => {
  if (value < 64) return Buffer.from([value]);
  if (value < 16_384) return Buffer.from([0x40 | (value >> 8), value & 255]);
  return Buffer.from([0x80 | (value >> 16), (value >> 8) & 255, value & 255]);
};
const text = (value: string) => Buffer.concat([number(Buffer.byteLength(value)), Buffer.from(value)]);

type Fields = {
  test?: string;
  seconds?: number;
  tags?: string[];
  mime?: string;
  file?: [string, Buffer];
  route?: string;
};

/** A packet, after the description of the protocol. */
function packet(status: number, { test, seconds, tags, mime, file, route }: Fields = {}): Buffer {
  const parts: Buffer[] = [];
  let flags = 0x2100 | status;
  const add = (flag: number, ...bytes: Buffer[]) => {
    flags |= flag;
    parts.push(...bytes);
  };
  const time = Buffer.alloc(4);
  if (seconds !== undefined) {
    time.writeUInt32BE(seconds);
    add(0x200, time, number(0));
  }
  if (test !== undefined) add(0x800, text(test));
  if (tags) add(0x80, number(tags.length), ...tags.map(text));
  if (mime !== undefined) add(0x20, text(mime));
  if (file) add(0x40, text(file[0]), number(file[1].length), file[1]);
  if (route !== undefined) add(0x400, text(route));
  const body = Buffer.concat(parts);
  const size = body.length + 7 + 1;
  const length = number(size < 64 ? size : size + 1 < 16_384 ? size + 1 : size + 2);
  const content = Buffer.concat([Buffer.from([0xb3, flags >> 8, flags & 255]), length, body]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(content));
  return Buffer.concat([content, sum]);
}

const [EXISTS, RUNS, SUCCESS, UNEXPECTED, SKIP, FAIL, EXPECTED] = [1, 2, 3, 4, 5, 6, 7];
const stream = (...packets: Buffer[]) => Buffer.concat(packets);
const one = (status: number, name = "m.Cart.test_adds") =>
  stream(packet(RUNS, { test: name, seconds: 1_769_900_000 }), packet(status, { test: name, seconds: 1_769_900_002 }));
const traceback = (last: string, name = "m.Cart.test_adds") =>
  packet(0, {
    test: name,
    mime: "text/x-traceback;charset=utf8",
    file: ["traceback", Buffer.from(`Traceback\n${last}\n`)],
  });

test("a compressed stream is recognised without being read whole", () => {
  const stream = fixtureBytes("subunit.bin");
  for (const bytes of [stream, Bun.gzipSync(new Uint8Array(stream))])
    expect(findFormat(bytes, 2 ** 20)).toBe("subunit");
});

test.each([
  [SUCCESS, "passed"],
  [UNEXPECTED, "failed failure"],
  [SKIP, "skipped"],
  [FAIL, "failed failure"],
  [EXPECTED, "passed"],
])("the status %d is %s", (status, outcome) => {
  const report = read(one(status!));
  expect(inShort(report)).toEqual([`${outcome}: m.Cart > test_adds`]);
  expect(report.cases[0]!.durationMs).toBe(2000);
  expect(report.completedAt).toEqual(new Date(1_769_900_002_000));
});

test("a failure with an exception that is no assertion is an error", () => {
  const kinds = ["AssertionError: 1 != 2", "KeyError: 'a'"].map(
    (last) => read(stream(traceback(last), one(FAIL!), traceback(last))).cases[0]!,
  );
  expect(kinds).toMatchObject([
    { kind: "failure", message: "AssertionError: 1 != 2" },
    { kind: "error", message: "KeyError: 'a'" },
  ]);
});

test("a test that runs again is one with two attempts", () => {
  expect(inShort(read(stream(one(FAIL!), one(SUCCESS!))))).toEqual(["passed flaky, 2 attempts: m.Cart > test_adds"]);
});

test("tags, routes, files in several packets, and parametrised names are read", () => {
  const name = "m.Cart.test_price(v1.5)";
  const report = read(
    stream(
      packet(RUNS!, { test: name, tags: ["slow", "db"], route: "0" }),
      packet(0, { test: name, mime: "text/plain", file: ["log", Buffer.from("Grü")], route: "0" }),
      packet(0, { test: name, mime: "text/plain", file: ["log", Buffer.from("ße")], route: "0" }),
      packet(SUCCESS!, { test: name }),
    ),
  );
  expect(report.cases[0]).toMatchObject({
    ...{ suite: "m.Cart", name: "test_price(v1.5)", output: "Grüße" },
    properties: { tag: "slow", "tag 2": "db" },
  });
});

describe("no silent green", () => {
  test("a test without an end, or listed without a result, has failed", () => {
    const running = packet(RUNS!, { test: "m.b" });
    const listed = packet(EXISTS!, { test: "m.c" });
    const report = read(stream(listed, one(SUCCESS!), running));
    expect(report.cases.map(({ name, status, message }) => [name, status, message])).toEqual([
      ["c", "failed", "It was listed, but has no result"],
      ["test_adds", "passed", null],
      ["b", "failed", "It did not finish"],
    ]);
  });

  test("a list without results is refused", () => {
    expect(() => read(packet(EXISTS!, { test: "m.a" }))).toThrow("it lists test cases without their results");
  });

  test("a packet with a wrong checksum, an impossible length or field ends the stream", () => {
    const [first, second] = [one(SUCCESS!), one(SUCCESS!, "m.b")];
    const flipped = Buffer.from(second);
    flipped[10]! ^= 1;
    const long = packet(SUCCESS!, { test: "m.b" });
    // The text of the test goes beyond the packet, under a right checksum.
    long[4] = 60;
    long.writeUInt32BE(crc32(long.subarray(0, -4)), long.length - 4);
    for (const rest of [
      flipped,
      second.subarray(0, -1),
      Buffer.from([0xb3, 0x29]),
      Buffer.from([0xb3, 0x29, 3, 4]),
      long,
    ]) {
      const report = read(stream(first, rest));
      expect(report.partial).toBe(true);
      expect(inShort(report).at(-1)).toBe("failed error: (stream is broken)");
    }
  });

  test("a stream that breaks off is refused, partial or red at every position where its tests are listed", () => {
    const names = ["m.a", "m.b"];
    const listed = names.map((name) => packet(EXISTS!, { test: name }));
    expect(silentGreens(stream(...listed, ...names.map((name) => one(SUCCESS!, name))))).toEqual([]);
  });

  test("without a list, only the end of a test is no break", () => {
    const first = one(SUCCESS!, "m.a");
    expect(silentGreens(stream(first, one(SUCCESS!, "m.b")))).toEqual([first.length]);
  });
});

describe("recognition", () => {
  test("what programs print between packets is left out, with a warning", () => {
    const report = read(stream(Buffer.from("warning: 1³ of é"), one(SUCCESS!), Buffer.from("bye³\n")));
    expect(inShort(report)).toEqual(["passed: m.Cart > test_adds"]);
    expect(report.warnings).toEqual(["Left out 24 bytes outside of packets"]);
  });

  test("other bytes are no stream, also where the format is named", () => {
    expect(() => readWith({ format: "subunit" }, Buffer.from([0xb3, 0x29, 5, 1, 2]))).toThrow(
      "it holds no packet of subunit version 2",
    );
    expect(() => readWith({ format: "tap" }, one(SUCCESS!))).toThrow("none of its lines is TAP");
  });

  test("version 1 is refused with the way to convert it", () => {
    expect(() => read(Buffer.from("test: m.a\nsuccess: m.a\n"))).toThrow("subunit-1to2 converts to version 2");
  });
});

test("any byte of a field may be odd", () => {
  const whole = packet(SUCCESS!, {
    test: "m.a",
    seconds: 1,
    tags: ["x"],
    mime: "text/plain",
    file: ["f", Buffer.from("y")],
  });
  for (let at = 4; at < whole.length - 4; at++) {
    for (const value of [0, 63, 64, 128, 192, 255]) {
      const odd = Buffer.from(whole);
      odd[at] = value;
      odd.writeUInt32BE(crc32(odd.subarray(0, -4)), odd.length - 4);
      const report = read(stream(one(SUCCESS!), odd));
      expect(report.format).toBe("subunit");
    }
  }
});
