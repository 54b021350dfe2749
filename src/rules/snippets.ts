/** The lines that upload a report from each CI system, with the address of the server and the id of the project. */

import type { System } from "../schema/onboarding.ts";
import { quoted } from "./shell.ts";

export type SnippetTarget = { publicUrl: string; projectId: string };

export const uploadUrl = ({ publicUrl, projectId }: SnippetTarget): string =>
  `${publicUrl}/api/v1/projects/${projectId}/test-runs`;

const UPLOAD = "assay upload report.xml -- npm test";

/** Returns the lines for a shell. */
export const shellSnippet = ({ publicUrl, projectId }: SnippetTarget): string =>
  `export ASSAY_URL=${quoted(publicUrl)} ASSAY_PROJECT=${projectId}\n${UPLOAD}`;

export function createSnippets(target: SnippetTarget): Record<System, string> {
  const { publicUrl, projectId } = target;
  const variables = `ASSAY_URL: ${JSON.stringify(publicUrl)}, ASSAY_PROJECT: "${projectId}"`;
  return {
    curl: `curl -H "Authorization: Bearer $ASSAY_KEY" -H "Accept: text/plain" --data-binary @report.xml "${uploadUrl(target)}?complete=true"`,
    githubActions: `- run: ${UPLOAD}
  env: { ${variables},
    ASSAY_KEY: "\${{ secrets.ASSAY_KEY }}" }`,
    gitlabCi: `test:
  variables: { ${variables} }
  script: ${UPLOAD}`,
    jenkins: `withCredentials([string(credentialsId: 'ASSAY_KEY', variable: 'ASSAY_KEY')]) {
  sh 'ASSAY_URL=${publicUrl} ASSAY_PROJECT=${projectId} ${UPLOAD}'
}`,
    circleci: `- run:
    command: ${UPLOAD}
    environment: { ${variables} }`,
    azurePipelines: `- bash: ${UPLOAD}
  env: { ${variables},
    ASSAY_KEY: $(ASSAY_KEY) }`,
    buildkite: `- label: test
  command: ${UPLOAD}
  env: { ${variables} }`,
  };
}
