/** Addresses of dashboard pages in answers and notifications. */

export const executionUrl = (publicUrl: string, projectId: string, executionId: string): string =>
  `${publicUrl}/projects/${projectId}/executions/${executionId}`;

export const taskUrl = (publicUrl: string, projectId: string, executionId: string, slug: string): string =>
  // Browsers read a segment of only dots as the folder above, so the task of such a name has no page.
  executionUrl(publicUrl, projectId, executionId) +
  (/^\.{1,2}$/.test(slug) ? "" : `/tasks/${encodeURIComponent(slug)}`);

export const bugReportUrl = (publicUrl: string, projectId: string, bugReportId: string): string =>
  `${publicUrl}/projects/${projectId}/bugs/${bugReportId}`;

export const testCaseUrl = (publicUrl: string, projectId: string, testCaseId: string): string =>
  `${publicUrl}/projects/${projectId}/tests/${testCaseId}`;

export const testsUrl = (publicUrl: string, projectId: string, health: string): string =>
  `${publicUrl}/projects/${projectId}/tests?q=is:${health}`;

export const bugsUrl = (publicUrl: string, projectId: string): string => `${publicUrl}/projects/${projectId}/bugs`;

export const executionsUrl = (publicUrl: string, projectId: string): string =>
  `${publicUrl}/projects/${projectId}/executions`;

export const projectUrl = (publicUrl: string, projectId: string): string => `${publicUrl}/projects/${projectId}`;

export const teamSettingsUrl = (publicUrl: string, teamId: string): string => `${publicUrl}/teams/${teamId}/settings`;

export const attachmentUrl = (publicUrl: string, projectId: string, attachmentId: string): string =>
  `${publicUrl}/projects/${projectId}/attachments/${attachmentId}`;
