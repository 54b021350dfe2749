/** Converts the schemas that check requests and answers to the JSON Schema of the OpenAPI document. */

import * as v from "valibot";
import { toJsonSchema } from "@valibot/to-json-schema";
import { attachment, caseAttachment } from "../schema/attachments.ts";
import { automationAction } from "../schema/automation_actions.ts";
import { automation, conditions, trigger } from "../schema/automations.ts";
import { automationRun } from "../schema/automation_runs.ts";
import { bugReport, bugReportDetail } from "../schema/bug_reports.ts";
import { culpritSearch } from "../schema/culprit_searches.ts";
import { caseRef } from "../schema/case_ref.ts";
import { comparison } from "../schema/comparisons.ts";
import { environment, variable } from "../schema/environments.ts";
import { executionGate, forgivenFailure, uploadGate } from "../schema/gate.ts";
import { execution } from "../schema/executions.ts";
import { plannedTask } from "../schema/planned_tasks.ts";
import { executionFailures, failedCaseRef } from "../schema/failures.ts";
import { delivery } from "../schema/deliveries.ts";
import { dispatch } from "../schema/integration_configs.ts";
import { integration } from "../schema/integrations.ts";
import { onboarding } from "../schema/onboarding.ts";
import { pagination } from "../schema/page.ts";
import { plan } from "../schema/plans.ts";
import { project } from "../schema/projects.ts";
import { nativeCase } from "../schema/reports.ts";
import { testCase, testCaseDetail, testCaseResult } from "../schema/test_cases.ts";
import { caseResult, testRun, uploadedRun } from "../schema/test_runs.ts";
import { branchState } from "../schema/state.ts";
import { projectTrends } from "../schema/trends.ts";
import { namedEventParts } from "../schema/event_bodies.ts";
import { loggedUpload } from "../schema/uploads.ts";

export type Json = Record<string, unknown>;

/** Parts of requests that have a name of their own in the document. */
export const requests: Record<string, v.GenericSchema> = {
  AutomationAction: automationAction,
  AutomationConditions: conditions,
  AutomationTrigger: trigger,
  Dispatch: dispatch,
  PlannedTask: plannedTask,
  ReportedCase: nativeCase,
};

/** Answers that have a name of their own in the document. */
export const definitions: Record<string, v.GenericSchema> = {
  ...namedEventParts,
  Attachment: attachment,
  CaseAttachment: caseAttachment,
  Automation: automation,
  AutomationRun: automationRun,
  BugReport: bugReport,
  BugReportDetail: bugReportDetail,
  CaseRef: caseRef,
  CulpritSearch: culpritSearch,
  FailedCaseRef: failedCaseRef,
  CaseResult: caseResult,
  Comparison: comparison,
  Delivery: delivery,
  Environment: environment,
  Execution: execution,
  ExecutionGate: executionGate,
  ForgivenFailure: forgivenFailure,
  UploadGate: uploadGate,
  ExecutionFailures: executionFailures,
  Integration: integration,
  Onboarding: onboarding,
  Pagination: pagination,
  Plan: plan,
  Project: project,
  TestCase: testCase,
  TestCaseDetail: testCaseDetail,
  TestCaseResult: testCaseResult,
  TestRun: testRun,
  Trends: projectTrends,
  BranchState: branchState,
  Upload: loggedUpload,
  UploadedRun: uploadedRun,
  Variable: variable,
};

export const settings = {
  target: "draft-2020-12",
  errorMode: "ignore",
  overrideRef: ({ referenceId }: { referenceId: string }) => `#/components/schemas/${referenceId}`,
  overrideAction: ({ valibotAction, jsonSchema }: { valibotAction: { type: string }; jsonSchema: object }) => {
    if (valibotAction.type !== "metadata") return undefined;
    // Other metadata of a schema is only used internally and for parameters.
    const { openapi: _, secret, ...rest } = jsonSchema as Json;
    return secret === true ? { ...rest, writeOnly: true } : rest;
  },
  /** JSON Schema cannot express these; their error messages state the requirement. */
  ignoreActions: ["transform", "check", "raw_check"],
};

/** Moves the description of a nullable value to the field. */
export function hoist(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hoist);
  if (typeof value !== "object" || value === null) return value;
  const schema = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, hoist(inner)])) as Json;
  const [first, second, ...others] = (Array.isArray(schema["anyOf"]) ? schema["anyOf"] : []) as Json[];
  if (!first || second?.["type"] !== "null" || others.length > 0) return schema;
  const { description, examples, ...inner } = first;
  return {
    ...(description ? { description } : {}),
    ...(examples ? { examples } : {}),
    ...schema,
    anyOf: [inner, second],
  };
}

export function convert(schema: v.GenericSchema, typeMode: "input" | "output"): Json {
  const {
    $schema: _,
    $defs: __,
    ...rest
  } = toJsonSchema(schema, {
    ...settings,
    typeMode,
    definitions: typeMode === "output" ? definitions : requests,
  } as never) as Json;
  return hoist(rest) as Json;
}

export const content = (schema: Json, type = "application/json") => ({ [type]: { schema } });
