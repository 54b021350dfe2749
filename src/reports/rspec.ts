/** RSpec JSON, of its formatter "json": https://rspec.info */

import { hiddenFailures, type JsonObject, toCase, toFields, asText, toTexts, asCount } from "./fields.ts";
import { type ReportedCase, type FailureKind, type Report, ReportError } from "./report.ts";
import { createCutter, type Cutter, disagreement, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";

/** Throws a ReportError when there is no list of examples. */
export function readRspec(json: unknown): Report {
  const { examples, summary, messages } = toFields(json);
  if (!Array.isArray(examples)) throw new ReportError(`"examples" is not a list`);
  if (examples.length >= MAX_CASES) throw tooManyCases();
  const cutter = createCutter();
  const cases = examples.map((example) => readExample(toFields(example), cutter));
  const { duration, example_count, failure_count, pending_count, errors_outside_of_examples_count } = toFields(summary);
  const declared = {
    tests: asCount(example_count),
    failed: asCount(failure_count),
    skipped: asCount(pending_count),
  };
  const warnings = disagreement(declared, cases);
  if ((asCount(errors_outside_of_examples_count) ?? 0) > 0) cases.push(...readErrors(toTexts(messages), cutter));
  return {
    format: "rspec",
    suite: null,
    cases: [...cases, ...hiddenFailures(cutter, failure_count, cases)],
    countsOnly: null,
    partial: false,
    durationMs: typeof duration === "number" ? toMs(duration * 1000) : null,
    completedAt: null,
    context: {},
    warnings: [...warnings, ...cutter.warnings()],
  };
}

function readExample(example: JsonObject, cutter: Cutter): ReportedCase {
  const { description, full_description, status, run_time, pending_message, exception } = example;
  const { class: type, message, backtrace } = toFields(exception);
  const [name, full] = [asText(description).trim(), asText(full_description).trim()];
  const isFailed = status === "failed" || (status !== "passed" && status !== "pending" && exception !== undefined);
  const text = asText(message).trim();
  const trace = [asText(type), text, ...toTexts(backtrace)].filter(Boolean).join("\n");
  return toCase(cutter, {
    // The groups are only the beginning of the full description, without separators.
    suite: name !== "" && full.endsWith(name) ? full.slice(0, full.length - name.length).trim() : "",
    name: name || full,
    file: asText(example.file_path).replace(/^file:\/\//, ""),
    line: example.line_number,
    status: isFailed ? "failed" : status === "passed" ? "passed" : "skipped",
    kind: toKind(asText(type)),
    durationMs: typeof run_time === "number" ? toMs(run_time * 1000) : null,
    message: isFailed ? firstLine(text) || asText(type) : asText(pending_message),
    stack: isFailed ? trace : null,
  });
}

/** RSpec's own exceptions are failed expectations; any other was raised by the code. */
function toKind(type: string): FailureKind {
  if (/timeout/i.test(type)) return "timeout";
  return type === "" || type.startsWith("RSpec::") || /Assertion/.test(type) ? "failure" : "error";
}

const LOADING = /^\s*An error occurred while loading ([^\n]+)/;

/** Reads failures to load a file and failed hooks around all examples, which RSpec writes as messages. */
function readErrors(messages: string[], cutter: Cutter): ReportedCase[] {
  const errors = messages.filter((message) => message.trimStart().startsWith("An error occurred "));
  return (errors.length > 0 ? errors : [messages.join("\n")]).map((stack) => {
    const file = LOADING.exec(stack)?.[1]?.trim().replace(/\.$/, "");
    const name = file ? "(file failed to load)" : "(error outside of examples)";
    const message = /^[A-Z]\w*(?:::\w+)*:\n\s*(\S.*)/m.exec(stack)?.[1] ?? firstLine(stack);
    return toCase(cutter, { name, file, status: "failed", kind: "error", message, stack: stack.trim() });
  });
}
