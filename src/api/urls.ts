/** Addresses of dashboard pages, as answers carry them. */

export const executionUrl = (publicUrl: string, projectId: string, executionId: string): string =>
  `${publicUrl}/projects/${projectId}/executions/${executionId}`;
