/** Reads everything that a server answers about a team and its project. */

import { type Access, PLAN, type RecordedAnswer, WAITING } from "./dump.ts";

type Read = { key: RecordedAnswer["key"]; path: string };

const ids = (body: any): string[] => body.data.map(({ id }: { id: string }) => id);

/** Lists are read with one page: none has more than a hundred elements. */
export async function collectAnswers(url: string, access: Access): Promise<RecordedAnswer[]> {
  const answers: RecordedAnswer[] = [];
  async function read(key: Read["key"], path: string): Promise<any> {
    const response = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${access[key]}` } });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const body = isJson ? JSON.parse(text) : text;
    // The release does not have this path.
    const isUnknown = response.status === 404 && /^No such endpoint/.test(body.error?.message);
    if (!isUnknown) answers.push({ key, path, status: response.status, body });
    return body;
  }

  const project = (path: string) => read("projectKey", `/projects/${access.project}${path}`);
  const team = (path: string) => read("teamKey", `/teams/${access.team}${path}`);
  await project("");
  for (const path of ["/onboarding", "/keys", "/owners", "/state?branch=main", "/state?branch=formats"])
    await project(path);
  await project("/test-runs?limit=100");
  const executions = await project("/executions?limit=100");
  for (const { id, key, tasks } of executions.data) {
    const path = `/executions/${id}`;
    if (key === WAITING) await project(`${path}/test-runs/unit/${PLAN}`);
    for (const rest of ["", "/comparison", "/failures", "/verdict?gate=new"]) await project(`${path}${rest}`);
    for (const { slug } of tasks) {
      const run = `${path}/test-runs/${slug}`;
      for (const rest of ["", "/cases?limit=100", "/log", "/leases"]) await project(`${run}${rest}`);
      const attachments = await project(`${run}/attachments?limit=100`);
      for (const attachment of attachments.data ?? []) await project(`/attachments/${attachment.id}`);
    }
  }
  for (const id of ids(await project("/test-cases?limit=100"))) {
    await project(`/test-cases/${id}`);
    await project(`/test-cases/${id}/results?limit=100`);
  }
  for (const id of ids(await project("/bug-reports?limit=100"))) {
    await project(`/bug-reports/${id}`);
    await project(`/bug-reports/${id}/occurrences?limit=100`);
  }
  const details = { environments: ["/variables"], integrations: ["/deliveries"], automations: ["/runs"] };
  for (const [noun, lists] of Object.entries({ ...details, "infrastructure-rules": [] })) {
    const { data = [] } = await team(`/${noun}`);
    for (const { id } of data) for (const list of ["", ...lists]) await team(`/${noun}/${id}${list}`);
  }
  return answers;
}
