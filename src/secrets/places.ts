/** What a sealed value is bound to: it opens nowhere else. */

export const variablePlace = (teamId: string, environmentId: string, name: string): string[] => [
  "variable",
  teamId,
  environmentId,
  name,
];

/** All variables of an execution are sealed together, and for its reruns as well. */
export const executionVariablesPlace = (projectId: string): string[] => ["execution variables", projectId];

/** All secrets of an integration are sealed together. */
export const integrationPlace = (teamId: string, integrationId: string): string[] => [
  "integration",
  teamId,
  integrationId,
];

/** What a browser keeps while its owner signs in elsewhere. */
export const oidcFlowPlace = (): string[] => ["oidc flow"];
