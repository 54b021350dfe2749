/** Messages of assistants, and texts of tests in the answers to them, take linear time. */

import { fit } from "../../../src/mcp/fit.ts";
import { idOf, parseRpcText, toMessage } from "../../../src/mcp/json_rpc.ts";
import { answerMcp } from "../../../src/mcp/protocol.ts";
import { allowsBatch, eraOf, negotiate } from "../../../src/mcp/revisions.ts";
import {
  showBug,
  showBugRow,
  showCause,
  showExecution,
  showExecutionRow,
  showTestCase,
} from "../../../src/mcp/shown.ts";
import { createCleaner } from "../../../src/mcp/untrusted.ts";
import { testLinearity } from "./growth.ts";

const attempt = (run: () => unknown) => {
  try {
    run();
  } catch {
    // What is refused took its time as well.
  }
};

const messageOf = (text: string) => ({
  id: 1,
  method: text,
  params: {
    name: text,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": text,
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});

const caller = { scope: null, api: {} as never, count() {} };

testLinearity("mcp", {
  "fit.ts": { fit: (text) => fit({ untrusted: { text, list: [text, text] } }, [text]) },
  "json_rpc.ts": {
    idOf: (text) => idOf({ id: text }),
    isJsonRecord: null,
    isResponse: null,
    parseRpcText: (text) => attempt(() => parseRpcText(text)),
    toErrorBody: null,
    toMessage: (text) => attempt(() => toMessage({ jsonrpc: "2.0", id: text, method: text, params: { text } })),
    toResponseBody: null,
  },
  "protocol.ts": {
    answerMcp: (text) => void answerMcp(JSON.stringify({ jsonrpc: "2.0", ...messageOf(text) }), () => text, caller),
  },
  "revisions.ts": {
    allowsBatch: (text) => allowsBatch(() => text),
    eraOf: (text) => attempt(() => eraOf(messageOf(text), () => text)),
    hasEnvelope: null,
    negotiate,
  },
  "shown.ts": {
    showBug: (text) =>
      showBug({ title: text, description: text, labels: [text], testCaseIds: [] } as never, createCleaner()),
    showBugRow: (text) => showBugRow({ description: text, testCaseIds: [] } as never, createCleaner()),
    showCause: (text) =>
      showCause(
        { message: text, stack: text, failed: 1, failures: [{ name: text, suite: text }], bugReport: null } as never,
        createCleaner(),
      ),
    showExecution: (text) => showExecution({ key: text, branch: text, tasks: [] } as never, createCleaner()),
    showExecutionRow: (text) => showExecutionRow({ key: text, branch: text, tasks: [] } as never, createCleaner()),
    showTestCase: (text) => showTestCase({ name: text, suite: text, quarantine: null } as never, createCleaner()),
  },
  "tool.ts": { mayCall: null, tool: null },
  "untrusted.ts": { createCleaner: (text) => createCleaner().text(text) },
  "why.ts": { findWhy: null, isRed: null },
});
