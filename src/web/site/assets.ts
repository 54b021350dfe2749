/** The style sheet, the script and the icon of the pages. Their names contain a hash of their content, so that browsers can cache them. */

import type { Path } from "../../http/html.ts";
import { FixedReply } from "../../request/reply.ts";
import { TERMINAL_STYLE } from "./terminal_style.ts";
import base from "./style/base.css" with { type: "text" };
import projects from "./style/projects.css" with { type: "text" };
import executions from "./style/executions.css" with { type: "text" };
import tasks from "./style/tasks.css" with { type: "text" };
import tests from "./style/tests.css" with { type: "text" };
import bugs from "./style/bugs.css" with { type: "text" };
import attachments from "./style/attachments.css" with { type: "text" };
import settings from "./style/settings.css" with { type: "text" };
import time from "./script/time.js" with { type: "text" };
import copy from "./script/copy.js" with { type: "text" };
import keys from "./script/keys.js" with { type: "text" };
import log from "./script/log.js" with { type: "text" };
import comparison from "./script/comparison.js" with { type: "text" };
import live from "./script/live.js" with { type: "text" };
import swaggerStyle from "swagger-ui-dist/swagger-ui.css" with { type: "text" };
import swaggerScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "text" };
import viewerStyle from "./viewer/viewer.css" with { type: "text" };
import viewerScript from "./viewer/viewer.js" with { type: "text" };

const style = [base, projects, executions, tasks, tests, bugs, attachments, settings, TERMINAL_STYLE].join("\n");
// All parts are bundled into one module, because they share functions. The live updates come first: they compare the page as the
// server has sent it, and the other parts change it.
const script = [live, time, copy, keys, log, comparison].join("\n");

const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#176f42"/><path d="M4.5 8.2l2.4 2.4 4.6-5" fill="none" stroke="#fff" stroke-width="1.8"/></svg>';

const nameOf = (kind: string, text: string): Path => `/assets/${Bun.SHA256.hash(text, "hex").slice(0, 12)}.${kind}`;
export const STYLE = nameOf("css", style);
export const SCRIPT = nameOf("js", script);
export const ICON = nameOf("svg", icon);

// The viewer of the API's operations.
const viewerStyles = `${swaggerStyle}\n${viewerStyle}`;
const viewerScripts = `${swaggerScript}\n${viewerScript}`;
export const VIEWER_STYLE = nameOf("css", viewerStyles);
export const VIEWER_SCRIPT = nameOf("js", viewerScripts);

const toAsset = (text: string, type: string) =>
  new FixedReply(text, type, { "Cache-Control": "public, max-age=31536000, immutable" });

export const ASSETS: Readonly<Record<string, FixedReply>> = {
  [STYLE]: toAsset(style, "text/css; charset=utf-8"),
  [SCRIPT]: toAsset(script, "text/javascript; charset=utf-8"),
  [ICON]: toAsset(icon, "image/svg+xml"),
  [VIEWER_STYLE]: toAsset(viewerStyles, "text/css; charset=utf-8"),
  [VIEWER_SCRIPT]: toAsset(viewerScripts, "text/javascript; charset=utf-8"),
};
