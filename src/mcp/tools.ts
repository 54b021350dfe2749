/** The tools that assistants can call. */

import type { Tool } from "./tool.ts";
import { bugReports } from "./tools/bugs.ts";
import { compare, getLog, listExecutions } from "./tools/executions.ts";
import { getFailures, whyIsItRed } from "./tools/red.ts";
import { flakyTests, testHistory } from "./tools/tests.ts";
import { quarantine, rerunFailed, triageBug } from "./tools/triage.ts";

/** In the order in which an assistant reads them. */
export const TOOLS: readonly Tool[] = [
  whyIsItRed,
  listExecutions,
  getFailures,
  testHistory,
  flakyTests,
  bugReports,
  getLog,
  compare,
  quarantine,
  triageBug,
  rerunFailed,
];
