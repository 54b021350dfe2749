/** What a sealed value is bound to: it opens nowhere else. */

export const variablePlace = (teamId: string, environmentId: string, name: string): string[] => [
  "variable",
  teamId,
  environmentId,
  name,
];

/** All secrets of an integration are sealed together. */
export const integrationPlace = (teamId: string, integrationId: string): string[] => [
  "integration",
  teamId,
  integrationId,
];
