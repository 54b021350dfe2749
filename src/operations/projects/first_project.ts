/** Creates the first objects of an empty built-in database: a team, a project, a key for each. */

import type { Database } from "../../database/connect.ts";
import { selectAnyAccount } from "../../store/accounts.ts";
import { type GeneratedKey, generateProjectKey, generateTeamKey } from "../people/keys.ts";
import { insertProject, insertTeam, lockTeams, selectAnyTeam } from "../../store/projects.ts";

type FirstStart = { teamId: string; projectId: string; teamKey: GeneratedKey; projectKey: GeneratedKey };

/** Undefined when there is a team or an account already. Servers that start at once create one between them. */
export async function createFirstProject({ begin }: Pick<Database, "begin">): Promise<FirstStart | undefined> {
  return await begin(async (sql) => {
    await lockTeams(sql);
    // A database with accounts is not empty: its teams were deleted.
    if ((await selectAnyTeam(sql)) || (await selectAnyAccount(sql))) return undefined;
    const teamId = await insertTeam(sql, "My team");
    const projectId = (await insertProject(sql, teamId, "My project"))!;
    const teamKey = (await generateTeamKey(sql, teamId, "First key"))!;
    return { teamId, projectId, teamKey, projectKey: (await generateProjectKey(sql, projectId))! };
  });
}

/** The page that makes the first account. */
export const setupUrl = (url: string, token: string): string => `${url}/setup?token=${token}`;

/**
 * Returns a text for people: ids, keys, lines to paste, and the link that creates the first account. It is printed once, because the keys
 * are not stored. The example names a branch: on the default branch its failure would remain the state of the project.
 */
export function welcome(
  url: string,
  { teamId, projectId, teamKey, projectKey }: FirstStart,
  setup: string | undefined,
): string {
  const runs = `${url}/api/v1/projects/${projectId}/test-runs`;
  const authorization = `-H "Authorization: Bearer ${projectKey.key}"`;
  const report =
    `<testsuite name="hello"><testcase name="works"/>` +
    `<testcase name="fails"><failure message="expected 1, got 2"/></testcase></testsuite>`;
  return `
Assay is set up. Save these keys: they are not shown again.

  Team     ${teamId}
           ${teamKey.key}
  Project  ${projectId}
           ${projectKey.key}
${setup === undefined ? "" : `\nOpen this link to create the first account. It works once:\n\n${setup}\n`}
Set these variables for the commands of the documentation:

export ASSAY_URL=${url} ASSAY_PROJECT=${projectId} ASSAY_KEY=${projectKey.key}

Upload a report of the branch "hello". For your own, replace -d … with --data-binary @report.xml:

curl ${authorization} -d '${report}' "${runs}?branch=hello"

List the runs:

curl ${authorization} "${runs}"
`;
}

/** A file in DATA_DIR that only its owner may read. */
export const FIRST_START_FILE = "first-start.txt";

/** Says where `welcome` is, if the output is not a terminal but a log that others may read. */
export const savedWelcome = (path: string, setup: string | undefined): string => `
Assay is set up. Keys and the first commands are in a file that only this account can read:

cat ${quote(path)}

Set the variables for the commands of the documentation:

eval "$(grep ^export ${quote(path)})"

Delete the file when you have saved the keys.
${setup === undefined ? "" : `\nOpen this link to create the first account. It works once:\n\n${setup}\n`}`;

const quote = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
