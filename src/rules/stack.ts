/** The project's own frames of a stack trace, whatever language wrote it: innermost first, without lines and columns. */

/** `file` is the last two segments of its path, or the class if the trace has no path; `function` may be "". */
export type Frame = { file: string; function: string };

type Dialect = { pattern: RegExp; toFrame: (match: RegExpExecArray) => Frame | null };

/** Code that is not the project's: packages, runtimes, test runners. */
const FOREIGN =
  /(?:^|[/\\])(?:node_modules|site-packages|dist-packages|vendor|gems|\.cargo|\.rustup|rustc|\.pyenv|\.m2|\.gradle|\.nuget)[/\\]|^(?:node|bun|internal|native|ext|deno):|^(?:internal|native|<|\[)|^\/(?:usr|opt)\/(?:local\/)?(?:lib|go|python|ruby|share)|^_testmain\.go$|[/\\]lib[/\\](?:python|ruby)[\d.]*[/\\]|[/\\]go[/\\]pkg[/\\]mod[/\\]|[/\\]src[/\\](?:testing|runtime|reflect)[/\\]/i;
const FOREIGN_CLASS =
  /^(?:java|javax|jdk|sun|com\.sun|junit|kotlin|kotlinx|scala|groovy|org\.(?:junit|testng|hamcrest|assertj|mockito|gradle|apache\.maven|opentest4j|spockframework|codehaus\.groovy)|System|Microsoft|Xunit|NUnit|Shouldly|FluentAssertions|Moq)\./;

const shorten = (path: string): string =>
  path
    .replace(/^file:\/\//, "")
    .replaceAll("\\", "/")
    .replace(/[?#].*$/, "")
    .split("/")
    .slice(-2)
    .join("/");

/** Removes additions of compilers and engines: receivers, generics, numbers of lambdas. */
const plainName = (name: string): string =>
  name
    .trim()
    .replace(/^(?:async |new |Object\.|Module\.|exports\.|block (?:\(\d+ levels\) )?in |rescue in )+/g, "")
    .replace(/<[^>]*>|\[as [^\]]*\]|\(.*\)$/g, "")
    .replace(/[$]?\d+/g, "")
    .replace(/\.+$/, "")
    .replace(/^(?:anonymous|<anonymous>|\{closure\}|module|<module>)$/i, "")
    .trim();

const ofFile = (path: string, name = ""): Frame | null =>
  FOREIGN.test(path) || !/\.\w+$/.test(path) ? null : { file: shorten(path), function: plainName(name) };

const ofClass = (name: string): Frame | null => {
  if (FOREIGN_CLASS.test(name)) return null;
  const at = name.lastIndexOf(".");
  return { file: plainName(name.slice(0, at)), function: plainName(name.slice(at + 1)) };
};

/** The first pattern that matches a line decides. Each is bounded, because lines are untrusted. */
const DIALECTS: Dialect[] = [
  // Java, Kotlin, Scala: at com.acme.Cart.add(Cart.java:12), at app//com.acme.Cart.add(Cart.java)
  {
    pattern:
      /^\s*at (?:[\w.@-]{1,100}\/{1,2}){0,2}([\w$.<>-]{3,300})\((?:[\w$-]{1,100}\.(?:java|kt|kts|scala|groovy)(?::\d+)?|Native Method|Unknown Source)\)/,
    toFrame: ([, name]) => ofClass(name!.replace(/\$\$?Lambda.*$/, ".lambda").replaceAll("$", ".")),
  },
  // C#: at Acme.Cart.Add(Int32 n) in /src/Cart.cs:line 12
  {
    pattern: /^\s*at ([\w.`<>[\]+|$-]{3,300})\([^()]{0,500}\)(?: in (.{1,500}):line \d+)?\s*$/,
    toFrame: ([, name, path]) => (path ? ofFile(path, name!.split(".").at(-1)) : ofClass(name!)),
  },
  // JavaScript: at add (src/cart.ts:12:3), at src/cart.ts:12:3
  {
    pattern: /^\s*at (?:(.{1,200}?) \()?((?:file:\/\/|[a-z]:)?[^\s():][^():]{0,500}):\d+:\d+\)?\s*$/i,
    toFrame: ([, name, path]) => ofFile(path!, name),
  },
  // Firefox and Safari: add@src/cart.ts:12:3
  {
    pattern: /^\s*([\w.$/<]{0,200})@((?:https?|file):\/\/.{1,500}?):\d+:\d+\s*$/,
    toFrame: ([, name, path]) => ofFile(path!, name),
  },
  // Python: File "cart.py", line 12, in add
  {
    pattern: /^\s*File "(.{1,500}?)", line \d+(?:, in (\S{1,200}))?/,
    toFrame: ([, path, name]) => ofFile(path!, name),
  },
  // pytest: src/cart.py:12: in add, tests/test_cart.py:12: AssertionError
  {
    pattern: /^([^\s:]{1,500}\.py):\d+: (?:in (\S{1,200})|\w*(?:Error|Exception)?\w*)\s*$/,
    toFrame: ([, path, name]) => ofFile(path!, name),
  },
  // Ruby: ./lib/cart.rb:12:in `add', # ./spec/cart_spec.rb:3
  {
    pattern: /^\s*(?:# |from )?(\S{1,500}\.rb):\d+(?::in [`'](.{1,200}?)')?/,
    toFrame: ([, path, name]) => ofFile(path!, name?.split(/[#.]/).at(-1)),
  },
  // PHP: #0 /app/src/Cart.php(12): Acme\Cart->add(), /app/tests/CartTest.php:12
  {
    pattern: /^\s*(?:#\d+ )?(\/?\S{1,500}\.php)(?:\((?:\d+)\)|:\d+)(?:: (?:[\w\\]{1,200}(?:->|::))?(\w{1,100}))?/,
    toFrame: ([, path, name]) => ofFile(path!, name),
  },
  // Rust: at ./src/cart.rs:12:5, panicked at src/cart.rs:12:5
  {
    pattern: /(?:^\s*at |panicked at (?:'.{0,300}', )?)(\S{1,500}\.rs):\d+(?::\d+)?/,
    toFrame: ([, path]) => ofFile(path!),
  },
  // Go: a line "\t/src/cart.go:12 +0x1d" below its function, or "cart_test.go:12: …"
  {
    pattern: /^\s*(\S{1,500}\.go):\d+(?::| \+0x|\s*$)/,
    toFrame: ([, path]) => ofFile(path!),
  },
];

const MAX_LINES = 200;

/** Equal ones in a row, as recursion makes them, are one; so are those without a name below one of the same file. */
export function ownFrames(stack: string): Frame[] {
  const frames: Frame[] = [];
  let isPython = false;
  for (const line of stack.split("\n", MAX_LINES)) {
    if (line.length > 2_000) continue;
    // A cause has a trace of its own, whose frames are further in than ours only in languages that print it first.
    if (/^\s*Caused by: /.test(line) && frames.length > 0) break;
    for (const { pattern, toFrame } of DIALECTS) {
      const match = pattern.exec(line);
      if (!match) continue;
      isPython ||= /^\s*File "/.test(line) || /\.py:\d+: /.test(line);
      const frame = toFrame(match);
      const last = frames.at(-1);
      const isSame = last?.file === frame?.file && (frame?.function === "" || last?.function === frame?.function);
      if (frame && !isSame) frames.push(frame);
      break;
    }
  }
  // Python writes the innermost call last.
  return isPython ? frames.reverse() : frames;
}

/** A line of a stack trace as it stands: of the project, of others, or no frame at all. */
export type StackLine = { text: string; kind: "own" | "foreign" | "text" };

/** Frames of runtimes that name no file. */
const RUNTIME = /^\s*at (?:.{1,200} \()?(?:<anonymous>|native\b|(?:node|bun|internal|deno|ext):)/;

/** Returns at most 200 lines. */
export function readStack(stack: string): StackLine[] {
  return stack.split("\n", MAX_LINES).map((text): StackLine => {
    if (text.length > 2_000) return { text, kind: "text" };
    for (const { pattern, toFrame } of DIALECTS) {
      const match = pattern.exec(text);
      if (match) return { text, kind: toFrame(match) ? "own" : "foreign" };
    }
    return { text, kind: RUNTIME.test(text) ? "foreign" : "text" };
  });
}

/** Whether the frame is of a test and not of what it tests. */
export const isTestFrame = ({ file, function: name }: Frame): boolean =>
  /(?:^|[/._-])(?:tests?|specs?|__tests__|e2e|features|steps|step_definitions|conftest)(?:[/._-]|$)|(?:Tests?|Specs?|IT)(?=[.$]|$)|_test\.\w+$/.test(
    file,
  ) || /^test_/.test(name);
