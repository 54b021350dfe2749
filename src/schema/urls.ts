/** Addresses of dashboard pages, as answers and notices carry them. */

export const executionUrl = (publicUrl: string, projectId: string, executionId: string): string =>
  `${publicUrl}/projects/${projectId}/executions/${executionId}`;

export const bugReportUrl = (publicUrl: string, projectId: string, bugReportId: string): string =>
  `${publicUrl}/projects/${projectId}/bugs/${bugReportId}`;

export const testCaseUrl = (publicUrl: string, projectId: string, testCaseId: string): string =>
  `${publicUrl}/projects/${projectId}/tests/${testCaseId}`;

export const projectUrl = (publicUrl: string, projectId: string): string => `${publicUrl}/projects/${projectId}`;

export const teamSettingsUrl = (publicUrl: string, teamId: string): string => `${publicUrl}/teams/${teamId}/settings`;

export const attachmentUrl = (publicUrl: string, projectId: string, attachmentId: string): string =>
  `${publicUrl}/projects/${projectId}/attachments/${attachmentId}`;
