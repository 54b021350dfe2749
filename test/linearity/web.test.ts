/** The parts of pages take linear time, whatever people and programs call things. Whole pages: pages.test.ts. */

import { sentenceOf, toAutomation } from "../../src/web/automation_fields.tsx";
import { bugPath, executionPath, executionName, taskPath, testPath } from "../../src/web/builds.tsx";
import { readCauseCursor } from "../../src/web/causes.ts";
import { evidenceOf, firstPlainLine, FULL, history, terminal } from "../../src/web/evidence.tsx";
import { shortNameOf } from "../../src/web/executions.tsx";
import { bad, good, hiddenField, input } from "../../src/web/fields.tsx";
import {
  filterChoice as filterChoice,
  filterForm,
  nameFilter,
  PART,
  readPlace,
  words,
  writePlace,
} from "../../src/web/filters.tsx";
import { checkbox, choice, done, field, toLines, splitList, wrong } from "../../src/web/form_fields.tsx";
import { toConfig } from "../../src/web/integration_fields.tsx";
import { actionButton, danger, hidden, layout } from "../../src/web/layout.tsx";
import { raw, render } from "../../src/http/html.ts";
import { breakable, chart, commitCode, mark, pager, strip, tag, toAddress, wordOf } from "../../src/web/parts.tsx";
import { acceptsHtml } from "../../src/web/page_reply.ts";
import { browserOf } from "../../src/web/people.ts";
import { toCurl, variableOf } from "../../src/web/reference.ts";
import { shortAgent } from "../../src/web/uploads.tsx";
import { FEW_TEXTS, testLinearity } from "./growth.ts";

const WHOLE = { isWhole: true, message: 1e6, stackLines: 200, diffLines: 200, output: 1e6 };
const createdAt = "2026-01-31T00:00:00.000Z";

// Most of them only put texts into markup, which http.test.ts looks at with all texts.
testLinearity(
  "web",
  {
    "automation_fields.tsx": {
      automationForm: null,
      sentenceOf: (text) =>
        sentenceOf(
          {
            name: text,
            trigger: { event: text },
            conditions: { branches: [text] },
            actions: [{ type: text }],
          } as never,
          { projects: [], integrations: [] } as never,
        ),
      toAutomation: (text) =>
        toAutomation({
          name: text,
          trigger: text,
          branches: text,
          environments: text,
          taskSlugs: text,
          schedule: text,
        }),
      toAutomationFields: null,
    },
    "causes.ts": {
      readCauseCursor: (text) => readCauseCursor(`1.${text}.${text}`),
      writeCauseCursor: null,
    },
    "builds.tsx": {
      bugPath: (text) => bugPath(text, text),
      ...{ buildRows: null, buildTable: null },
      executionPath: (text) => executionPath(text, text),
      executionName: (text) => executionName({ key: text, createdAt }),
      ...{ statusOf: null, toldOutcome: null },
      taskPath: (text) => taskPath("p", "e", text),
      testPath: (text) => testPath("p", text),
    },
    "changes.ts": { change: null },
    "error_pages.tsx": { createErrorPages: null },
    "evidence.tsx": {
      evidenceOf: (text) => {
        for (const measure of [FULL, WHOLE]) {
          evidenceOf({ message: text, stack: text, output: text }, measure, "");
          evidenceOf(
            { message: `a\n${text}`, stack: `Error: a\n${text}\n    at a (${text})`, output: text },
            measure,
            "",
          );
        }
      },
      firstPlainLine,
      history: (text) => history(text.slice(0, 100)),
      terminal: (text) => terminal(text),
    },
    "executions.tsx": {
      shardsWord: null,
      shortNameOf: (text) => shortNameOf({ key: text, createdAt, commit: text } as never),
      whyMissing: null,
    },
    "fields.tsx": {
      ...{ bad, good },
      input: (text) => input({ name: text, label: text, value: text, hint: text }),
      hiddenField: (text) => hiddenField("a", text),
      ...{ clientOf: null, emailInput: null, nameInput: null, newPasswordInput: null, personOf: null },
      ...{ providerLink: null, read: null, refusalOf: null, requirePasswords: null, storesOf: null, tokenOf: null },
    },
    "filters.tsx": {
      filterChoice: (text) => filterChoice(text, "a", [[text, text]], text),
      filterForm: (text) => filterForm(`/${text}`, [], true),
      nameFilter: (text) => nameFilter(text, "a", [text], text),
      readPlace: (text) => [PART.real, PART.time, PART.id].map((part) => [part(text), readPlace(text, [part])]),
      words: (text) => words(text, "a", text),
      writePlace: (text) => writePlace([text]),
    },
    "form_fields.tsx": {
      tryForm: null,
      checkbox: (text) => checkbox(text, text, true, text),
      choice: (text) => choice(text, text, [[text, text]], { value: text }),
      ...{ done, wrong, toLines, splitList },
      field: (text) => field(text, text, { value: text, hint: text, type: "area", placeholder: text }),
    },
    "integration_fields.tsx": {
      configForm: null,
      toConfig: (text) =>
        (["webhook", "slack", "github", "jira"] as const).map((kind) =>
          toConfig(kind, { url: text, token: text, repository: text, labels: text, headers: text }, "new"),
        ),
      toConfigFields: null,
    },
    "layout.tsx": {
      actionButton: (text) => actionButton(`/${text}`, text, text),
      danger: (text) => danger(`/${text}`, text, text, text),
      hidden,
      layout: (text) =>
        layout(
          { title: text, body: raw(text), live: text },
          {
            csrf: text,
            project: { name: text } as never,
            team: { id: "t", name: text },
            role: "owner",
            visitor: { name: text },
          },
        ),
    },
    "onboarding.tsx": { countsOf: null },
    "page.ts": { form: null, page: null },
    "page_access.ts": { enterFrame: null, mayStillSee: null },
    "page_error.ts": { noSuchPage: null },
    "page_form.ts": { createFieldReader: null },
    "page_reply.ts": {
      acceptsHtml: (text) => acceptsHtml({ headers: { get: () => text } } as never),
      ...{ redirect: null, toPageReply: null },
    },
    "parts.tsx": {
      breakable: (text) => render(breakable(text)),
      chart: (text) => chart(text, [], { format: String } as never),
      commitCode,
      mark: (text) => mark(text),
      pager: (text) => pager(`/${text}`, { a: text }, text),
      strip: (text) => strip([{ status: text, href: `/${text}`, label: text }], text),
      tag: (text) => tag(text, text),
      toQuery: null,
      toAddress: (text) => toAddress("/a", { a: text }),
      wordOf,
      ...{ ago: null, toCount: null, counted: null, standingOf: null, toDay: null, toDuration: null, toExact: null },
      ...{ toPercent: null, toSpan: null },
    },
    "people.ts": { browserOf, withArticle: null },
    "probes.ts": { createProbes: null },
    "project_state.tsx": { branchHeadline: null, missingTasks: null, redTasks: null, summaryOf: null },
    "reruns.tsx": { howToRepeat: null, rerunsOf: null },
    "projects.tsx": { grid: null },
    "reference.ts": {
      // What it describes is our own contract.
      branchesOf: null,
      ...{ exampleOf: null, groupsOf: null, mayBeNull: null, objectsOf: null, referenceOf: null },
      toCurl: (text) =>
        toCurl({ method: "GET", path: "/projects/{projectId}", parameters: [] } as never, text, { projectId: text }),
      variableOf,
    },
    "share_parts.tsx": { shareForm: null, shareName: null, shareSection: null },
    "site.ts": { createSite: null },
    "task_logs.tsx": { findTask: null, leaseTable: null, logBox: null, readLeases: null, readLog: null },
    "tests.tsx": { severityOf: null },
    "trends.tsx": { trendCharts: null },
    "uploads.tsx": { uploadsHeadline: null, shortAgent },
  },
  FEW_TEXTS,
);
