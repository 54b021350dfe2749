/** Contexts that sealed values are bound to. A value opens only with the context it was sealed with. */

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

/** The context of the cookie that a browser keeps while its owner signs in at the provider. */
export const oidcFlowPlace = (): string[] => ["oidc flow"];
