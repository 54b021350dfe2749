/** Issues in Linear. */

import {
  at,
  shorten,
  judge,
  listAt,
  oneLine,
  parse,
  postJson,
  retryAfter,
  type Sender,
  textAt,
  toMarkdown,
} from "./sender.ts";

const CREATE =
  "mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier url } } }";

const says = (body: unknown): string | undefined => {
  const [error] = listAt(body, "errors");
  return textAt(error, "extensions", "userPresentableMessage") ?? textAt(error, "message");
};

export const linear: Sender<"linear"> = {
  actions: ["create_issue"],
  sample: "create_issue",

  async send(http, { baseUrl, token, teamId }, { notice, now }) {
    const input = {
      teamId,
      title: shorten(oneLine(notice.subject), 250),
      description: shorten(toMarkdown(notice), 60_000),
    };
    const answer = await http.request(
      postJson(`${baseUrl}/graphql`, { Authorization: token }, { query: CREATE, variables: { input } }),
    );
    const body = parse(answer.text);
    const errors = listAt(body, "errors");
    // A rate limit arrives as 400, and errors arrive as 200.
    if (errors.some((error) => textAt(error, "extensions", "code") === "RATELIMITED")) {
      const afterMs = retryAfter(answer, now);
      return { status: "retry", error: "Rate limited", ...(afterMs ? { afterMs } : {}) };
    }
    if (answer.status === 200 && at(body, "data", "issueCreate", "success") === true && errors.length === 0) {
      const link = textAt(body, "data", "issueCreate", "issue", "url");
      return { status: "sent", ...(link === undefined ? {} : { link }) };
    }
    if (answer.status === 200) return { status: "refused", error: says(body) ?? "No issue was created" };
    return judge(answer, false, now, says);
  },
};
