/** Issues in Linear. */

import { cut, judge, oneLine, parse, postJson, retryAfter, type Sender, toMarkdown } from "./sender.ts";

const CREATE =
  "mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier url } } }";

type Body = {
  errors?: { message?: string; extensions?: { code?: string; userPresentableMessage?: string } }[];
  data?: { issueCreate?: { success?: boolean; issue?: { url?: string } | null } | null };
};

const says = (body: unknown): string | undefined => {
  const [error] = (body as Body | undefined)?.errors ?? [];
  return error?.extensions?.userPresentableMessage ?? error?.message;
};

export const linear: Sender<"linear"> = {
  actions: ["create_issue"],
  sample: "create_issue",

  async send(http, { baseUrl, token, teamId }, { notice, now }) {
    const input = { teamId, title: cut(oneLine(notice.subject), 250), description: cut(toMarkdown(notice), 60_000) };
    const answer = await http.request(
      postJson(`${baseUrl}/graphql`, { Authorization: token }, { query: CREATE, variables: { input } }),
    );
    const body = parse(answer.text) as Body | undefined;
    const errors = body?.errors ?? [];
    // A rate limit arrives as 400, and errors arrive as 200.
    if (errors.some(({ extensions }) => extensions?.code === "RATELIMITED")) {
      const afterMs = retryAfter(answer, now);
      return { status: "retry", error: "Rate limited", ...(afterMs ? { afterMs } : {}) };
    }
    const created = body?.data?.issueCreate;
    if (answer.status === 200 && created?.success === true && errors.length === 0)
      return { status: "sent", ...(created.issue?.url ? { link: created.issue.url } : {}) };
    if (answer.status === 200) return { status: "refused", error: cut(says(body) ?? "No issue was created", 500) };
    return judge(answer, false, now, says);
  },
};
