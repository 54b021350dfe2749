/** Names fields as the labels of forms do, and not as the API does. */

/** Labels that differ from the name of the field. */
const LABELS: Readonly<Record<string, string>> = {
  externalUrl: "External link",
  executionTimeoutMinutes: "Execution time-out",
  retentionDays: "Retention",
  confirm: "Name",
  pattern: "Text",
  keys: "Keys of the issuer",
  baseUrl: "Address",
  expiresInDays: "Expires after (days)",
  integrationId: "Integration",
};

/** "executionTimeout" → "Execution timeout"; of a nested field, the last name. */
export function toLabel(name: string): string {
  const last = name.split(".").findLast((part) => !/^\d+$/.test(part)) ?? name;
  const words = last.replaceAll("_", " ").replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return LABELS[last] ?? words[0]!.toUpperCase() + words.slice(1);
}

/** `Cannot read "externalUrl": expected a URL` → `External link: expected a URL`. */
export const toFormMessage = (message: string): string =>
  message.replaceAll(/Cannot read "([A-Za-z][\w.]*)"/g, (_, name: string) => toLabel(name));
