/** What failing tests say: causes, each with an exception, a place and a message of which a part varies every time. */

import type { Random } from "../../random.ts";

/** How a task's runner writes exceptions and stacks. */
export type Language = "vitest" | "jest" | "cypress" | "pytest" | "java";

export type Frame = { file: string; function: string; line: number };

/** Where a test stands that fails. */
export type TestPlace = { file: string; function: string; line: number };

/** What a report says of a failed test. `message` is one line, `stack` is as its runner prints it. */
export type Failure = { type: string; message: string; stack: string };

/** One reason for which tests fail. */
export type Cause = {
  /** Failures with the same one have the same reason. */
  id: string;
  kind: "regression" | "pull request" | "flaky" | "outage" | "incident";
  tell: (random: Random, place: TestPlace) => Failure;
};

type Sort = "assertion" | "timeout" | "connection" | "type" | "state";

const EXCEPTIONS: Record<Language, Record<Sort, string[]>> = {
  vitest: {
    assertion: ["AssertionError"],
    timeout: ["TimeoutError", "Error"],
    connection: ["Error", "FetchError"],
    type: ["TypeError"],
    state: ["Error", "RangeError"],
  },
  jest: {
    assertion: ["Error", "AssertionError"],
    timeout: ["TimeoutError"],
    connection: ["FetchError", "Error"],
    type: ["TypeError"],
    state: ["Error", "ValidationError"],
  },
  cypress: {
    assertion: ["AssertionError"],
    timeout: ["CypressError"],
    connection: ["CypressError"],
    type: ["TypeError"],
    state: ["Error"],
  },
  pytest: {
    assertion: ["AssertionError"],
    timeout: ["TimeoutError", "asyncio.exceptions.TimeoutError"],
    connection: ["requests.exceptions.ConnectionError", "ConnectionRefusedError"],
    type: ["TypeError", "AttributeError"],
    state: ["ValueError", "KeyError", "sqlalchemy.exc.IntegrityError"],
  },
  java: {
    assertion: ["java.lang.AssertionError", "org.opentest4j.AssertionFailedError"],
    timeout: ["java.util.concurrent.TimeoutException", "org.awaitility.core.ConditionTimeoutException"],
    connection: ["java.net.ConnectException", "java.io.IOException"],
    type: ["java.lang.ClassCastException", "java.lang.NullPointerException"],
    state: ["java.lang.IllegalStateException", "org.springframework.dao.DataIntegrityViolationException"],
  },
};

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789";
const BASE62 = LOWER + LOWER.toUpperCase() + DIGITS;
const HEX = "0123456789abcdef";

/** What differs from failure to failure. */
const varying = (random: Random) => {
  const hex = (length: number) => random.text(length, HEX);
  const ip = () => `10.${random.integer(0, 255)}.${random.integer(0, 255)}.${random.integer(1, 254)}`;
  return {
    hex,
    ip,
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`,
    nano: () => random.text(21, `${BASE62}_-`),
    base36: () => random.text(random.integer(8, 11), LOWER + DIGITS),
    sha: () => hex(random.integer(7, 9)),
    session: () => `sess_${random.text(24, BASE62)}`,
    pod: (service: string) =>
      `${service}-${random.text(10, "bcdfghjklmnpqrstvwxz2456789")}-${random.text(5, LOWER + DIGITS)}`,
    css: () => `${random.pick(["Button", "Modal", "Row", "Field"])}_root__${random.text(5, BASE62)}`,
    port: () => random.integer(30_000, 65_000),
    ms: () => random.integer(5_001, 9_999),
    seconds: () => random.integer(5, 90),
    count: () => random.integer(2, 900),
    bytes: () => random.integer(20_000, 9_000_000),
    time: () => new Date(1_790_000_000_000 + random.integer(0, 9_000_000_000)).toISOString(),
    amount: () => `${random.integer(1, 900)}.${random.text(2, DIGITS)}`,
    file: () => `/tmp/${random.pick(["build", "job", "pytest-of-ci"])}-${random.text(8, BASE62)}/out.json`,
  };
};
type Varying = ReturnType<typeof varying>;

type Template = [sort: Sort, say: (noun: string, v: Varying) => string];

const TEMPLATES: Template[] = [
  ["assertion", (noun, v) => `expected ${noun} total to be ${v.amount()} but was ${v.amount()}`],
  ["assertion", (noun, v) => `expected ${noun} list to have length ${v.count()} but got ${v.count()}`],
  ["assertion", (noun, v) => `the ${noun} row ${v.nano()} is missing from the page`],
  ["assertion", (noun, v) => `snapshot of the ${noun} view differs in build ${v.sha()}`],
  ["assertion", (noun, v) => `${noun} order changed: first id was ${v.uuid()}`],
  ["assertion", (noun, v) => `rounding of ${noun} amounts is off by ${v.amount()} cents`],
  ["assertion", (noun, v) => `element .${v.css()} covers the ${noun} button`],
  ["timeout", (noun, v) => `Timed out after ${v.ms()}ms waiting for the ${noun} dialog`],
  ["timeout", (noun, v) => `no ${noun} event arrived on topic run-${v.base36()} in ${v.seconds()}s`],
  ["timeout", (noun, v) => `${noun} job ${v.uuid()} did not finish within ${v.ms()} ms`],
  ["timeout", (noun, v) => `container ${v.hex(12)} for ${noun} is not healthy after ${v.seconds()} seconds`],
  ["timeout", (noun, v) => `lock for ${noun} is held by runner-${v.base36()} since ${v.time()}`],
  ["connection", (noun, v) => `connection to ${noun} service ${v.pod("svc")} was reset on port ${v.port()}`],
  ["connection", (noun, v) => `request for ${noun} to http://${v.ip()}:${v.port()}/v1 failed with status code 503`],
  ["connection", (noun, v) => `stream of the ${noun} feed closed with code 1006 by ${v.ip()}:${v.port()}`],
  ["connection", (noun, v) => `port ${v.port()} of the ${noun} stub is already in use`],
  ["connection", (noun, v) => `${noun} broker ${v.pod("kafka")} left the group while polling, session ${v.session()}`],
  ["type", (noun, v) => `cannot convert ${noun} record ${v.nano()} to a number`],
  ["type", (noun, v) => `${noun} handler is not a function (chunk ${v.base36()})`],
  ["state", (noun, v) => `duplicate key in ${noun} table: Key (id)=(${v.uuid()}) already exists`],
  ["state", (noun, v) => `deadlock on ${noun}: process ${v.count()} waits for transaction ${v.bytes()}`],
  ["state", (noun, v) => `${noun} token ${v.session()} was issued in the future: ${v.time()}`],
  ["state", (noun, v) => `${noun} cache returned stale entry ${v.base36()} after ${v.ms()}ms`],
  ["state", (noun, v) => `temporary file ${v.file()} for the ${noun} export vanished`],
  ["state", (noun, v) => `upload of ${noun} picture ${v.nano()} stopped at ${v.bytes()} of ${v.bytes()} bytes`],
  ["state", (noun, v) => `${noun} worker ${v.sha()} exited before it acknowledged message ${v.uuid()}`],
];

/** Each is handed out once, so that different causes never say the same. */
export function createCauses(random: Random, nouns: readonly string[]) {
  const left = TEMPLATES.flatMap((template) => nouns.map((noun): [Template, string] => [template, noun]));
  return (
    language: Language,
    { id, kind, frame }: { id: string; kind: Cause["kind"]; frame: Frame | null },
    modes = 1,
  ): Cause => {
    const told = Array.from({ length: modes }, () => {
      const [[sort, say], noun] = left.splice(random.integer(0, left.length - 1), 1)[0]!;
      return { type: random.pick(EXCEPTIONS[language][sort]), say: (v: Varying) => say(noun, v) };
    });
    const tell = (random: Random, place: TestPlace): Failure => {
      const { type, say } = random.pick(told);
      const message = say(varying(random));
      return toFailure(language, { type, message, frame, place });
    };
    return { id, kind, tell };
  };
}

/** A service that everything needs is down. */
export function createOutage(language: Language): Cause {
  const type = EXCEPTIONS[language].connection[0]!;
  return {
    id: "outage",
    kind: "outage",
    tell: (random, place) => {
      const v = varying(random);
      const message = `connect ECONNREFUSED ${v.ip()}:${v.port()} (pod ${v.pod("gateway")})`;
      return toFailure(language, { type, message, frame: null, place });
    },
  };
}

/** What services and machines do to whoever happens to need them. */
const OUTSIDE: ((noun: string, v: Varying) => [sort: Sort, message: string])[] = [
  (noun, v) => ["connection", `connect ECONNREFUSED ${v.ip()}:${v.port()} (${noun})`],
  (noun, v) => ["connection", `request for ${noun} to http://${v.ip()}:${v.port()}/v1 failed with status code 503`],
  (noun, v) => ["connection", `connection to ${noun} service ${v.pod("svc")} was reset on port ${v.port()}`],
  (noun) => ["connection", `getaddrinfo EAI_AGAIN ${noun}.internal`],
  (noun, v) => ["state", `ENOSPC: no space left on device, write '/tmp/${noun}-${v.base36()}/out.json'`],
];

/** The same kind of trouble for all tests that it reaches. */
export function createOutside(
  language: Language,
  random: Random,
  told: Pick<Cause, "id" | "kind">,
  noun: string,
): Cause {
  const say = random.pick(OUTSIDE);
  const tell: Cause["tell"] = (one, place) => {
    const [sort, message] = say(noun, varying(one));
    return toFailure(language, { type: EXCEPTIONS[language][sort][0]!, message, frame: null, place });
  };
  return { ...told, tell };
}

type Told = { type: string; message: string; frame: Frame | null; place: TestPlace };

function toFailure(language: Language, { type, message, frame, place }: Told): Failure {
  const frames = frame ? [frame, place] : [place];
  const head = `${type}: ${message}`;
  const lines: Record<Language, () => string[]> = {
    vitest: () => [head, ...frames.map((at) => ` ❯ ${at.function} ${at.file}:${at.line}:7`)],
    jest: () => [
      head,
      ...frames.map((at) => `    at ${at.function} (/home/runner/work/shop/shop/${at.file}:${at.line}:13)`),
      "    at Promise.then.completed (/home/runner/work/shop/shop/node_modules/jest-circus/build/utils.js:298:28)",
    ],
    cypress: () => [head, ...frames.map((at) => `    at ${at.function} (webpack://shop/./${at.file}:${at.line}:11)`)],
    // The innermost call comes last.
    pytest: () => [
      `    def ${place.function}(client):`,
      `>       ${frame ? `${frame.function}(client)` : "assert result.ok"}`,
      "",
      ...frames
        .toReversed()
        .flatMap((at, index) => [
          `${at.file}:${at.line}: ${index === frames.length - 1 ? type.split(".").at(-1)! : ""}`.trimEnd(),
          ...(index === frames.length - 1 ? [] : ["_ _ _ _ _ _ _ _ _ _", ""]),
        ]),
      `E   ${head}`,
    ],
    java: () => [
      head,
      ...frames.map((at) => {
        const name = at.file.split("/").at(-1)!;
        const path = at.file.replace(/^src\/(?:main|test)\/java\//, "").replace(/\.java$/, "");
        return `\tat ${path.replaceAll("/", ".")}.${at.function}(${name}:${at.line})`;
      }),
      "\tat java.base/jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:103)",
      "\tat org.junit.platform.engine.support.hierarchical.NodeTestTask.execute(NodeTestTask.java:151)",
    ],
  };
  return { type, message, stack: lines[language]().join("\n") };
}
