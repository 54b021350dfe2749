/** Cucumber JSON, as the Cucumbers of JavaScript, Ruby and Java write it. */

import { FINISHED_BADLY, joinAttempts, toStepKind, toStepMessage } from "./cucumber_steps.ts";
import { type JsonObject, toCase, toFields, asList, asText } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type Report, ReportError } from "./report.ts";
import {
  clean,
  createCutter,
  type Cutter,
  firstLine,
  MAX_CASES,
  plural,
  toMs,
  tooManyCases,
  type WrittenAttachment,
} from "./text.ts";

/** Throws a ReportError when it is no list, or there are too many scenarios. */
export function readCucumber(json: unknown): Report {
  if (!Array.isArray(json)) throw new ReportError("it is not a list of features");
  const cutter = createCutter();
  const unknown = createUnknown();
  const cases = new Map<string, ReportedCase>();
  let ended = 0;
  for (const feature of json.map(toFields)) {
    let background: unknown[] = [];
    for (const element of asList(feature.elements).map(toFields)) {
      if (element.type === "background") {
        background = toSteps(element);
        continue;
      }
      const { id, line, name, start_timestamp } = element;
      // Without a location, a retry cannot be distinguished from another scenario of the same name.
      const location = asText(id) || asText(line) ? [feature.uri, id, line, name] : [cases.size];
      const key = location.map(asText).join("\0");
      const steps = [...background, ...toSteps(element)].map(toFields);
      const result = readScenario(feature, element, steps, { cutter, unknown });
      const earlier = cases.get(key);
      cases.set(key, earlier ? joinAttempts(earlier, result) : result);
      if (cases.size > MAX_CASES) throw tooManyCases();
      const end = Date.parse(asText(start_timestamp)) + (result.durationMs ?? 0);
      if (end > ended) ended = end;
      background = [];
    }
  }
  return {
    format: "cucumber",
    suite: null,
    cases: [...cases.values()],
    countsOnly: null,
    partial: false,
    durationMs: null,
    completedAt: ended >= Date.UTC(2000) && ended < Date.UTC(2200) ? new Date(ended) : null,
    context: {},
    warnings: [...unknown.warnings(), ...cutter.warnings()],
  };
}

/** Returns the steps with the hooks, which JavaScript lists among the steps, and Ruby and Java around them. */
function toSteps({ before, steps, after }: JsonObject): unknown[] {
  const hooks = (list: unknown) => asList(list).map((hook) => ({ ...toFields(hook), hidden: true }));
  const inner = asList(steps).flatMap((step) => {
    const around = toFields(step);
    return [...hooks(around.before), step, ...hooks(around.after)];
  });
  return [...hooks(before), ...inner, ...hooks(after)];
}

type Reading = { cutter: Cutter; unknown: ReturnType<typeof createUnknown> };

function readScenario(
  feature: JsonObject,
  element: JsonObject,
  steps: JsonObject[],
  { cutter, unknown }: Reading,
): ReportedCase {
  const broken = steps.find((step) => FINISHED_BADLY.has(statusOf(step)));
  // The hooks around a skipped step pass, and a scenario without steps did not test anything.
  const ran =
    steps.some((step) => step.hidden !== true) &&
    steps.every((step) => statusOf(step) === "passed" || (step.hidden === true && statusOf(step) === ""));
  const isUnknown = !broken && !ran && steps.some((step) => !KNOWN.has(statusOf(step)) && step.hidden !== true);
  if (isUnknown) unknown.count();
  const status: CaseStatus = broken ? "failed" : ran ? "passed" : "skipped";
  const stack = broken ? asText(toFields(broken.result).error_message) : "";
  const tags = asList(element.tags).map((tag): [string, string] => ["tag", asText(toFields(tag).name)]);
  return toCase(cutter, {
    suite: asText(feature.name).trim(),
    name: asText(element.name),
    file: asText(feature.uri).replace(/^file:(?:\/\/)?/, ""),
    line: element.line,
    status,
    kind: broken && toStepKind(broken.hidden === true, statusOf(broken), stack),
    durationMs: sumOf(steps),
    message: broken && (firstLine(stack) || toStepMessage(broken.hidden === true, statusOf(broken), toText(broken))),
    stack,
    output: steps.flatMap(toOutput).join("\n"),
    properties: tags.filter(([, value]) => value !== ""),
    attachments: steps.flatMap(toEmbedded),
  });
}

const KNOWN = new Set([...FINISHED_BADLY, "passed", "skipped"]);

/** Counts scenarios of which a step has no result. */
function createUnknown() {
  let scenarios = 0;
  return {
    count: () => void scenarios++,
    warnings: () =>
      scenarios === 0 ? [] : [`${plural(scenarios, "scenario")} with a step without a result counted as skipped`],
  };
}

const statusOf = (step: JsonObject): string => asText(toFields(step.result).status).toLowerCase();

const toText = ({ keyword, name }: JsonObject): string => `${asText(keyword).trim()} ${asText(name)}`.trim();

/** Returns the sum in nanoseconds; null if the report has no durations. */
function sumOf(steps: JsonObject[]): number | null {
  const times = steps.map(({ result }) => toFields(result).duration).filter((time) => typeof time === "number");
  return times.length === 0 ? null : toMs(times.reduce((sum, time) => sum + time, 0) / 1e6);
}

/** Lists of texts, and with JavaScript an embedding in base64. */
function toOutput({ output, embeddings }: JsonObject): string[] {
  const logs = asList(embeddings).map(toFields);
  return [
    ...asList(output).flat().map(asText),
    ...logs.filter(isLog).map(({ data }) => clean(Buffer.from(asText(data), "base64").toString())),
  ].filter((text) => text !== "");
}

const isLog = ({ mime_type }: JsonObject) => mime_type === "text/x.cucumber.log+plain";

/** The files that a step holds, in base64. */
const toEmbedded = ({ embeddings }: JsonObject): WrittenAttachment[] =>
  asList(embeddings)
    .map(toFields)
    .filter((one) => !isLog(one))
    .map(({ name, mime_type, media, data }) => ({
      name: asText(name),
      // Ruby writes it as a field of `media`.
      contentType: asText(mime_type) || asText(toFields(media).type),
      base64: typeof data === "string" ? data : undefined,
    }));
