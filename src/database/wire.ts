/** The hottest reads without what the driver does for each: a session that it has opened, spoken to in PostgreSQL's protocol. */

import postgres, { type Sql } from "postgres";
import { type Session as WatchedSession, sessionsOf } from "./silence.ts";
import { DriverSocket } from "./socket.ts";

type Texts = (string | null)[];

type Wire = {
  /** Undefined while there is no session: then the driver is there. */
  ask(text: string, parameters: readonly string[]): Promise<Texts[]> | undefined;
  /** Returns what is watched for silence: the session, or the driver's connection that becomes one. */
  sessions(): WatchedSession[];
  close(): Promise<void>;
};

type Options = {
  /** A pool for one connection through this socket. */
  open(socket: (options: postgres.ParsedOptions) => DriverSocket): Sql;
};

const AGAIN_MS = 1_000;
const wires = new WeakMap<Sql, Wire>();

/**
 * The rows of one statement that answers texts: `$1` and so on stand for the parameters. Statements are prepared, so let
 * their texts be few.
 */
export function readTexts(sql: Sql, text: string, parameters: readonly string[]): Promise<Texts[]> {
  return (
    wires.get(sql)?.ask(text, parameters) ??
    (sql.unsafe(text, parameters as string[], { prepare: true }).values() as Promise<unknown> as Promise<Texts[]>)
  );
}

/** What the pool's `readTexts` goes by, as long as it is there. Opens its session with the first one. */
export function attachWire(sql: Sql, { open }: Options): Pick<Wire, "sessions" | "close"> {
  let session: Session | undefined;
  let openingPool: Sql | undefined;
  let opening: Promise<void> | undefined;
  let notBefore = 0;
  let isClosed = false;

  async function begin(): Promise<void> {
    let socket: DriverSocket | undefined;
    const pool = open((options) => (socket = new DriverSocket(toAddress(options))));
    const { ssl, host } = pool.options;
    // The driver knows how to encrypt, and which of several hosts to take.
    if (ssl || host.length > 1) return void (notBefore = Infinity);
    const end = (seconds: number) => pool.end({ timeout: seconds });
    openingPool = pool;
    try {
      const [row] = await pool<{ pid: number }[]>`select pg_backend_pid() as pid`;
      // It may have ended again before it could be taken.
      if (isClosed || socket!.readyState === "closed") return await end(1);
      session = createSession(socket!, row!.pid, end, () => (session = undefined));
    } catch {
      // The driver that is asked instead tells what is wrong.
      notBefore = performance.now() + AGAIN_MS;
      await end(0);
    } finally {
      openingPool = undefined;
    }
  }

  const wire: Wire = {
    ask(text, parameters) {
      if (session) return session.ask(text, parameters);
      if (!isClosed && !opening && performance.now() >= notBefore)
        opening = begin().finally(() => (opening = undefined));
      return undefined;
    },
    sessions: () => (session ? [session.watched] : openingPool ? sessionsOf(openingPool) : []),
    async close() {
      isClosed = true;
      await session?.end(1);
      await opening;
    },
  };
  wires.set(sql, wire);
  return wire;
}

const toAddress = ({ path, host, port }: postgres.ParsedOptions) =>
  path ? { unix: path as string } : { hostname: host[0]!, port: port[0]! };

type Question = {
  text: string;
  parameters: readonly string[];
  /** Whether the statement is prepared with it. */
  parses: boolean;
  isRepeated: boolean;
  resolve(rows: Texts[]): void;
  reject(error: Error): void;
};

// As the driver does: more than this goes at once, less with what else comes in this turn.
const WRITE_AT = 1_024;
/** The plan was made for a table that has changed since; no such statement: one that failed to be prepared. */
const STALE = new Set(["0A000", "26000"]);

const code = (letter: string) => letter.charCodeAt(0);
const [PARSE, BIND, EXECUTE, SYNC] = [code("P"), code("B"), code("E"), code("S")];
const [DATA_ROW, READY, ERROR] = [code("D"), code("Z"), code("E")];

type End = (seconds: number) => Promise<void>;

function createSession(socket: DriverSocket, pid: number, end: End, onClosed: () => void) {
  const names = new Map<string, string>();
  let named = 0;
  // A pooler may give the session to others, whose statements must not be taken for ours.
  const prefix = `w${crypto.randomUUID().replaceAll("-", "")}_`;
  let asked: Question[] = [];
  /** How many of them have been answered. */
  let answered = 0;
  let heardAt = performance.now();
  let sentBytes = 0;
  let isProbing = false;
  let isScheduled = false;
  let output = Buffer.allocUnsafe(65_536);
  let length = 0;
  let rest: Buffer | undefined;
  let rows: Texts[] = [];
  let failure: postgres.PostgresError | undefined;

  function begin(type: number): number {
    output[length] = type;
    length += 5;
    return length - 4;
  }
  const finish = (start: number) => void output.writeInt32BE(length - start, start);
  function int16(value: number): void {
    length = output.writeInt16BE(value, length);
  }
  function int32(value: number): void {
    length = output.writeInt32BE(value, length);
  }
  function cString(value: string): void {
    length += output.write(value, length);
    output[length++] = 0;
  }

  function flush(): void {
    isScheduled = false;
    // A copy: what the kernel does not take is kept, and this buffer is written to again.
    if (length > 0) socket.write(output.subarray(0, length));
    sentBytes += length;
    length = 0;
  }
  function flushInTurn(): void {
    if (isScheduled) flush();
  }

  function send(question: Question): void {
    const { text, parameters } = question;
    let name = names.get(text);
    question.parses = name === undefined;
    let needed = 128 + (name === undefined ? 3 * text.length : 0);
    for (const parameter of parameters) needed += 4 + 3 * parameter.length;
    if (length + needed > output.length) {
      flush();
      if (needed > output.length) output = Buffer.allocUnsafe(needed);
    }
    if (name === undefined) {
      names.set(text, (name = `${prefix}${++named}`));
      const parse = begin(PARSE);
      cString(name);
      cString(text);
      int16(0);
      finish(parse);
    }
    const bind = begin(BIND);
    cString("");
    cString(name);
    int16(0);
    int16(parameters.length);
    for (const parameter of parameters) {
      const bytes = output.write(parameter, length + 4);
      int32(bytes);
      length += bytes;
    }
    int16(0);
    finish(bind);
    const execute = begin(EXECUTE);
    cString("");
    int32(0);
    finish(execute);
    finish(begin(SYNC));
    if (answered === asked.length && !isProbing) heard();
    asked.push(question);
    if (length >= WRITE_AT) flush();
    else flushSoon();
  }

  function flushSoon(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(flushInTurn);
  }

  function heard(): void {
    heardAt = performance.now();
    sentBytes = 0;
  }

  function answer(): void {
    // A probe is sent only while nothing else is owed, so its answer comes first.
    if (isProbing) return void (isProbing = false);
    const question = asked[answered++]!;
    if (answered === asked.length || answered > 1_000) {
      asked = asked.slice(answered);
      answered = 0;
    }
    const error = failure;
    const got = rows;
    failure = undefined;
    rows = [];
    if (!error) return question.resolve(got);
    if (question.parses || STALE.has(error.code)) names.delete(question.text);
    if (!STALE.has(error.code) || question.isRepeated) return question.reject(error);
    question.isRepeated = true;
    send(question);
  }

  function onData(bytes: Buffer): void {
    heard();
    const input = rest ? Buffer.concat([rest, bytes]) : bytes;
    rest = undefined;
    let at = 0;
    while (at + 5 <= input.length) {
      const next = at + 1 + input.readInt32BE(at + 1);
      if (next > input.length) break;
      const type = input[at];
      if (type === DATA_ROW) rows.push(readRow(input, at + 5));
      else if (type === READY) answer();
      else if (type === ERROR) failure = readError(input.subarray(at + 5, next));
      at = next;
    }
    if (at < input.length) rest = input.subarray(at);
  }

  function onClose(error: Error | undefined): void {
    onClosed();
    const closed = Object.assign(new Error("The connection to the database was closed"), { code: "CONNECTION_CLOSED" });
    for (const question of asked.slice(answered)) question.reject(failure ?? error ?? closed);
    asked = [];
    void end(0);
  }

  socket.take({ onData, onClose });
  return {
    ask: (text: string, parameters: readonly string[]) =>
      new Promise<Texts[]>((resolve, reject) => {
        send({ text, parameters, parses: false, isRepeated: false, resolve, reject });
      }),
    watched: {
      pid,
      get owes() {
        return asked.length > answered ? "statement" : isProbing ? "probe" : null;
      },
      get heardAt() {
        return heardAt;
      },
      get sentBytes() {
        return sentBytes;
      },
      get isIdle() {
        return asked.length === answered;
      },
      probe() {
        if (isProbing || asked.length > answered) return;
        heard();
        isProbing = true;
        finish(begin(SYNC));
        flushSoon();
      },
      destroy: () => socket.destroy(),
    } satisfies WatchedSession as WatchedSession,
    end,
  };
}

type Session = ReturnType<typeof createSession>;

function readRow(input: Buffer, at: number): Texts {
  const row: Texts = [];
  const count = input.readInt16BE(at);
  at += 2;
  for (let column = 0; column < count; column++) {
    const length = input.readInt32BE(at);
    at += 4;
    row.push(length < 0 ? null : input.toString("utf8", at, at + length));
    if (length > 0) at += length;
  }
  return row;
}

const FIELDS: Record<string, string> = {
  S: "severity_local",
  V: "severity",
  C: "code",
  M: "message",
  D: "detail",
  R: "routine",
};

function readError(fields: Buffer): postgres.PostgresError {
  const known = fields
    .toString()
    .split("\0")
    .flatMap((field) => (FIELDS[field[0] ?? ""] ? [[FIELDS[field[0]!], field.slice(1)]] : []));
  return new (postgres.PostgresError as any)(Object.fromEntries(known));
}
