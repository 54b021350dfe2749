/** The parts of pages take linear time, whatever people and programs call things. Whole pages: pages.test.ts. */

import { raw, render } from "../../../src/http/html.ts";
import { Attachments } from "../../../src/web/components/attachments.tsx";
import { Bars } from "../../../src/web/components/bars.tsx";
import { Gates } from "../../../src/web/components/gates.tsx";
import { Legend } from "../../../src/web/components/legend.tsx";
import { Evidence, FULL, History } from "../../../src/web/components/failure.tsx";
import { FilterBar, FilterName, FilterSelect, FilterText, StatusFilter } from "../../../src/web/components/filters.tsx";
import {
  ActionForm,
  Checkbox,
  Csrf,
  Danger,
  Field,
  field,
  Form,
  FormError,
  Hidden,
  Notice,
  noticeParameter,
  Options,
  Select,
} from "../../../src/web/components/form.tsx";
import { countedLoss, DangerZone, deletionView } from "../../../src/web/components/deletion.tsx";
import { LogLines, LogText, readLogLines } from "../../../src/web/components/log.tsx";
import { CardTable, Empty, FirstReportLink, Pager, TableHead, TeamList } from "../../../src/web/components/list.tsx";
import { Mark, Tag, wordOf } from "../../../src/web/components/status.tsx";
import { Strip } from "../../../src/web/components/strip.tsx";
import { Terminal } from "../../../src/web/components/terminal.tsx";
import { Breakable, Commit, External } from "../../../src/web/components/text.tsx";
import { toAutomation } from "../../../src/web/pages/automations/fields.tsx";
import { sentenceOf } from "../../../src/web/pages/automations/sentence.ts";
import { readCauseCursor } from "../../../src/web/components/causes.ts";
import { toConfig } from "../../../src/web/pages/integrations/fields.tsx";
import { browserOf } from "../../../src/web/components/people.tsx";
import { shortAgent } from "../../../src/web/pages/uploads/upload_table.tsx";
import { splitList, toLines } from "../../../src/web/site/action.ts";
import { layout } from "../../../src/web/site/layout.tsx";
import { acceptsHtml } from "../../../src/web/site/page_reply.ts";
import {
  attachmentPath,
  bugPath,
  executionPath,
  taskPath,
  testPath,
  toAddress,
  toQuery,
} from "../../../src/web/site/paths.ts";
import { FEW_TEXTS, testCalls, testLinearity } from "./growth.ts";

const WHOLE = { isWhole: true, message: 1e6, stackLines: 200, diffLines: 200, output: 1e6 };

// Most of them only put texts into markup, which http.test.ts looks at with all texts.
testLinearity(
  "web/components",
  {
    "attachments.tsx": {
      Attachments: (text) => {
        const file = { id: text, name: text, path: text, mediaType: "text/plain", bytes: 1, preview: text };
        Attachments({ projectId: text, files: [file, { ...file, mediaType: "image/png" }] });
      },
    },
    "bars.tsx": {
      Bars: (text) => {
        const bar = { status: text, value: 1, href: `/${text}`, name: text, label: text } as const;
        Bars({ title: text, bars: [bar], show: String, columns: [text, text, text] });
      },
    },
    "causes.ts": { readCauseCursor: (text) => readCauseCursor(`1.${text}.${text}`), writeCauseCursor: null },
    "day_bars.tsx": { DayBars: null },
    "deletion.tsx": {
      countedLoss: (text) => countedLoss(2, text),
      DangerZone: (text) => DangerZone({ what: "team", path: `/${text}` }),
      deletionView: (text) => {
        const shown = { name: text, losses: [text], consequence: text, csrf: text, problem: text, given: text };
        return deletionView({ what: "team", settings: `/${text}`, ...shown }).body;
      },
    },
    "execution_table.tsx": {
      ...{ ExecutionTable: null, outcomeText: null },
    },
    "failure.tsx": {
      Evidence: (text) => {
        for (const measure of [FULL, WHOLE]) {
          Evidence({ failure: { message: text, stack: text, output: text }, measure, title: "" });
          const stack = `Error: a\n${text}\n    at a (${text})`;
          Evidence({ failure: { message: `a\n${text}`, stack, output: text }, measure, title: "" });
        }
      },
      History: (text) => History({ letters: text.slice(0, 100) }),
    },
    "filters.tsx": {
      FilterBar: (text) => FilterBar({ path: `/${text}`, isFiltered: true }),
      FilterName: (text) => FilterName({ label: text, name: "a", names: [text], value: text }),
      FilterSelect: (text) => FilterSelect({ label: text, name: "a", options: [[text, text]], value: text }),
      FilterText: (text) => FilterText({ label: text, name: "a", value: text, suggestions: [text] }),
      StatusFilter: (text) => StatusFilter({ path: `/${text}`, options: [[text, text]], value: text }),
    },
    "gates.tsx": {
      Gates: (text) => {
        const failure = {
          testCaseId: text,
          taskSlug: text,
          suite: text,
          name: text,
          file: text,
          list: "flaky" as const,
        };
        const gate = {
          shard: null,
          gate: "new" as const,
          pass: true,
          reasons: [text],
          forgivenCount: 1,
          decidedAt: text,
        };
        return Gates({ projectId: text, gates: [{ ...gate, forgiven: [{ ...failure, reason: text }] }] });
      },
    },
    "form.tsx": {
      ActionForm: (text) => ActionForm({ action: `/${text}`, csrf: text, label: text }),
      Checkbox: (text) => Checkbox({ label: text, name: text, checked: true, value: text }),
      Csrf: (text) => Csrf({ token: text }),
      Danger: (text) => Danger({ action: `/${text}`, csrf: text, label: text, loss: text }),
      Field: (text) => Field({ label: text, name: text, value: text, hint: text, type: "area", placeholder: text }),
      field: (text) => field({ [text]: text }, text, text, { hint: text }),
      Form: (text) => Form({ to: `/${text}`, csrf: text, button: text, children: text }),
      FormError: (text) => FormError({ message: text }),
      Hidden: (text) => Hidden({ name: "a", value: text }),
      Notice: (text) => Notice({ notices: { [text]: text }, name: text }),
      noticeParameter: (text) => noticeParameter({ [text]: text }),
      Options: (text) => Options({ options: [[text, text]], value: text }),
      Select: (text) => Select({ label: text, name: text, options: [[text, text]], value: text }),
    },
    // Its texts are those of Danger.
    "keys.tsx": { CiVariables: null, LastUse: null, newKeyView: null, RevokeKey: null },
    "legend.tsx": { Legend: (text) => Legend({ statuses: [text] }) },
    "log.tsx": {
      ...{ LogLines: null },
      LogText: (text) => LogText({ text, name: text }),
      readLogLines: (text) =>
        render(LogLines({ lines: readLogLines(text, 1, text.slice(0, Math.min(200, text.length / 2))), name: text })),
    },
    "project_state.tsx": { branchHeadline: null, summaryOf: null },
    "share_parts.tsx": { shareForm: null, shareName: null, shareSection: null },
    "people.tsx": {
      ...{ browserOf, withArticle: null },
      ...{ EmailField: null, NameField: null, NewPasswordField: null, providerLink: null },
    },
    "status.tsx": {
      Mark: (text) => Mark({ status: text }),
      Tag: (text) => Tag({ children: text, kind: text }),
      ...{ testStatusOf: null, wordOf, worstFirst: null },
    },
    // Its texts are those of Breakable.
    "slower_tests.tsx": { SlowerTests: null },
    "strip.tsx": {
      Strip: (text) => Strip({ items: [{ status: text, href: `/${text}`, label: text }], label: text }),
    },
    "list.tsx": {
      ...{ AgoCell: null, MarkCell: null, toPagedRows: null },
      CardTable: (text) => CardTable({ caption: text, columns: [text], children: text }),
      Empty: (text) => Empty({ children: text, action: text }),
      FirstReportLink: (text) => FirstReportLink({ projectId: text }),
      Pager: (text) => Pager({ path: `/${text}`, query: { a: text }, cursor: text }),
      TableHead: (text) => render(TableHead({ caption: text, columns: [text, [text, "hidden"]] })),
      TeamList: (text) =>
        TeamList({
          path: `/${text}`,
          title: text,
          noun: text,
          description: text,
          suggestion: text,
          hasNewPage: true,
          role: "owner",
          list: { rows: [], next: text },
          notices: {},
          query: { cursor: text },
        }),
    },
    "terminal.tsx": {
      ...{ Stretches: null },
      Terminal: (text) => Terminal({ text }),
    },
    "text.tsx": {
      Breakable: (text) => render(Breakable({ text })),
      Commit: (text) => Commit({ hash: text }),
      External: (text) => External({ href: `https://${text}`, of: Breakable({ text }) }),
      ...{ Ago: null, toExact: null, toPercent: null, toSpan: null, toStateSpan: null },
    },
    "trends.tsx": { BranchTrends: null },
    "commit_ranges.ts": { readCommitRanges: null },
  },
  FEW_TEXTS,
);

testLinearity(
  "web/site",
  {
    "error_pages.tsx": { createErrorPages: null },
    "action.ts": { splitList, toLines, ...{ action: null, deletion: null, tryForm: null, write: null } },
    "layout.tsx": {
      layout: (text) =>
        layout(
          { title: text, body: raw(text), live: text },
          {
            csrf: text,
            project: { name: text } as never,
            team: { id: "t", name: text },
            role: "owner",
            visitor: { name: text, isQuiet: true, plannedDeletions: [] },
          },
        ),
    },
    "page.ts": { form: null, page: null },
    "page_error.ts": { noSuchPage: null },
    "page_reply.ts": {
      acceptsHtml: (text) => acceptsHtml({ headers: { get: () => text } } as never),
      ...{ redirect: null, toPageReply: null },
    },
    "paths.ts": {
      attachmentPath: (text) => attachmentPath("p", text),
      bugPath: (text) => bugPath(text, text),
      executionPath: (text) => executionPath(text, text),
      taskPath: (text) => taskPath("p", "e", text),
      testPath: (text) => testPath("p", text),
      toAddress: (text) => toAddress("/a", { a: text }),
      toQuery: (text) => toQuery({ a: text }),
    },
    "people_input.ts": {
      ...{ clientOf: null, personOf: null, read: null, requirePasswords: null },
      ...{ storesOf: null, tokenOf: null },
    },
    "probes.ts": { createHealthProbes: null },
    "site.ts": { createSite: null },
  },
  FEW_TEXTS,
);

testCalls(
  {
    "pages/automation_fields.tsx": {
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
    },
    "pages/executions.tsx": {},
    "pages/integration_fields.tsx": {
      toConfig: (text) =>
        (["webhook", "slack", "github", "jira"] as const).map((kind) =>
          toConfig(kind, { url: text, token: text, repository: text, labels: text, headers: text }, "new"),
        ),
    },
    "pages/uploads.tsx": { shortAgent },
  },
  FEW_TEXTS,
);
