/** The tools that assistants can call. */

import type { Tool } from "./tool.ts";
import { bugReportsTool } from "./tools/bugs.ts";
import { culpritTool } from "./tools/culprit.ts";
import { compareTool, getLogTool, listExecutionsTool } from "./tools/executions.ts";
import { getFailuresTool, whyIsItRedTool } from "./tools/red.ts";
import { flakyTestsTool, testHistoryTool } from "./tools/tests.ts";
import { quarantineTool, rerunFailedTool, triageBugTool } from "./tools/triage.ts";

/** Tools in the order in which an assistant reads them. */
export const TOOLS: readonly Tool[] = [
  whyIsItRedTool,
  listExecutionsTool,
  getFailuresTool,
  testHistoryTool,
  flakyTestsTool,
  bugReportsTool,
  culpritTool,
  getLogTool,
  compareTool,
  quarantineTool,
  triageBugTool,
  rerunFailedTool,
];
