/** Issues in Jira, in the Cloud or a Data Center. */

import {
  at,
  shorten,
  judge,
  linksOf,
  listAt,
  MAX_BUG_LINE_CHARACTERS,
  oneLine,
  parse,
  postJson,
  type Sender,
  textAt,
  withLink,
} from "./sender.ts";
import type { Notification } from "../schema/notifications.ts";

const paragraph = (content: unknown[]) => ({ type: "paragraph", content });
const plain = (text: string) => ({ type: "text", text: oneLine(text) || "–" });
const link = (text: string, href: string) => ({ type: "text", text, marks: [{ type: "link", attrs: { href } }] });

/** The Atlassian Document Format, which the Cloud demands. */
function toDocument(notice: Notification) {
  const { text, facts, lines, knownBugs = [] } = notice;
  const items = facts.map(({ name, value }) => ({
    type: "listItem",
    content: [paragraph([plain(`${name}: ${shorten(value, 1_000)}`)])],
  }));
  return {
    type: "doc",
    version: 1,
    content: [
      paragraph([plain(text)]),
      ...(items.length > 0 ? [{ type: "bulletList", content: items }] : []),
      ...(lines.length > 0
        ? [
            {
              type: "codeBlock",
              content: [{ type: "text", text: shorten(lines.map(oneLine).join("\n"), 20_000) || "–" }],
            },
          ]
        : []),
      ...knownBugs.map(({ text, url }) => paragraph([link(shorten(oneLine(text), MAX_BUG_LINE_CHARACTERS), url)])),
      ...linksOf(notice).map(({ name, url }) => paragraph([link(name, url)])),
    ],
  };
}

/** Wiki markup; text in {noformat} is not interpreted. */
function toIssueText(notice: Notification): string {
  const { text, facts, lines, knownBugs = [] } = notice;
  const named = knownBugs.map(({ text }) => shorten(text, MAX_BUG_LINE_CHARACTERS));
  const quoted = [text, ...facts.map(({ name, value }) => `${name}: ${value}`), ...lines, ...named]
    .map((line) => oneLine(line).replaceAll("{noformat}", "{ noformat }"))
    .join("\n");
  const links = [
    ...knownBugs.map(({ number, url }) => `Bug #${number}: ${url}`),
    ...linksOf(notice).map(({ name, url }) => `${name}: ${url}`),
  ];
  return [`{noformat}\n${shorten(quoted, 20_000)}\n{noformat}`, ...links].join("\n");
}

const says = (body: unknown): string | undefined => {
  const fields = at(body, "errors");
  const parts = [
    ...listAt(body, "errorMessages").map(String),
    ...(typeof fields === "object" && fields !== null
      ? Object.entries(fields).map(([field, reason]) => `${field}: ${String(reason)}`)
      : []),
  ];
  return parts.length === 0 ? undefined : parts.join("; ");
};

export const jira: Sender<"jira"> = {
  actions: ["create_issue"],
  sample: "create_issue",

  async send(http, config, { notice, options, now }) {
    const { baseUrl, email, token, projectKey, issueType } = config;
    const isCloud = email !== null;
    const authorization = isCloud ? `Basic ${Buffer.from(`${email}:${token}`).toString("base64")}` : `Bearer ${token}`;
    const answer = await http.request(
      postJson(
        `${baseUrl}/rest/api/${isCloud ? 3 : 2}/issue`,
        { Authorization: authorization, Accept: "application/json" },
        {
          fields: {
            project: { key: projectKey },
            issuetype: { name: issueType },
            summary: shorten(oneLine(notice.subject), 255),
            description: isCloud ? toDocument(notice) : toIssueText(notice),
            // Jira's labels hold no spaces.
            labels: (options.labels ?? config.labels).map((label) => label.replace(/\s+/g, "-")),
          },
        },
      ),
    );
    const outcome = judge(answer, answer.status === 201, now, says);
    const key = textAt(parse(answer.text), "key");
    return withLink(outcome, key === undefined ? undefined : `${baseUrl}/browse/${key}`);
  },
};
