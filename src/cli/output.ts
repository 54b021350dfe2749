/** Makes text of others safe to print: without commands to a terminal or a CI system, and without this build's secrets. */

import { createMask } from "../secrets/mask.ts";

/** Azure, GitHub and TeamCity look for these anywhere in a line: `##[error]`, `##vso[…]`, `##teamcity[…]`. */
export const withoutWorkflowCommands = (text: string): string => text.replace(/##(?=\w*\[)/g, "# #");

/**
 * Returns one line that no CI system interprets: control characters become blanks, which also breaks GitLab's section markers, and `::`
 * does not begin the line, where GitHub looks for its commands.
 */
export const toPlainLine = (text: string): string =>
  withoutWorkflowCommands(text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")).replace(/^(\s*):(?=:)/, "$1: ");

/** The same line by line. */
export const toPlainLines = (text: string): string =>
  text
    .split(/\r\n|[\r\n]/)
    .map(toPlainLine)
    .join("\n");

/** Unsafe characters beyond ASCII's control characters, which JSON escapes anyway. */
const UNSAFE_IN_JSON = /[\x7f\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu;

/** Returns the value as one line of JSON, without characters that terminals or CI systems interpret. */
export const toJsonLine = (value: unknown): string =>
  JSON.stringify(value)
    .replace(UNSAFE_IN_JSON, (character) =>
      Array.from({ length: character.length }, (_, at) => toEscape(character.charCodeAt(at))).join(""),
    )
    // Numbers and names of JSON have no "#": it is always within a text.
    .replaceAll("##", "#\\u0023");

const toEscape = (unit: number): string => `\\u${unit.toString(16).padStart(4, "0")}`;

type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/** Shorter ones would blank out words that they happen to be in. */
const MIN_SECRET_LENGTH = 6;

/** Secrets that a command must not print. */
export type SecretSet = {
  /** Adds a secret that was received from others than the environment. */
  add(secret: string): void;
  list(): string[];
  /** Hides all secrets that are known so far. */
  mask(text: string): string;
};

/** Collects secrets: the key, the tokens of a CI job, a password in an address, and further ones. */
export function createSecrets(environment: EnvironmentVariables): SecretSet {
  const received = new Set<string>();
  const list = () => [...new Set([...secretsOf(environment), ...received])].filter(isLongEnough);
  return {
    add: (secret) => void received.add(secret),
    list,
    mask: (text) => createOutputMask(list())(text),
  };
}

const isLongEnough = ({ length }: string): boolean => length >= MIN_SECRET_LENGTH;

function secretsOf(environment: EnvironmentVariables): string[] {
  const address = environment["ASSAY_URL"]?.trim() ?? "";
  const authority = address.slice(address.indexOf("://") + 3).split(/[/?#]/, 1)[0]!;
  const user = authority.slice(0, Math.max(0, authority.lastIndexOf("@")));
  const password = user.slice(user.indexOf(":") + 1);
  const tokens = ["ASSAY_KEY", "ASSAY_ID_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"].map(
    (name) => environment[name]?.trim() ?? "",
  );
  return [...tokens, user, password, decoded(password)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Masks secrets in all output, also in the forms of `encodings`, because a CI system masks a secret only in its plain form. Applied to the
 * final text after all encoding, and also to text before it is truncated, because a secret without its end is no longer recognised.
 */
export function createOutputMask(
  secrets: readonly string[],
  encodings: readonly ((text: string) => string)[] = [],
): (text: string) => string {
  return createMask(secrets.flatMap((secret) => [secret, ...encodings.map((encode) => encode(secret))])).text;
}

/** Returns a copy of a JSON value with all texts cleaned. */
export const cleanTexts = <T>(value: T, clean: (text: string) => string): T =>
  JSON.parse(JSON.stringify(value), (_, member: unknown) => (typeof member === "string" ? clean(member) : member));
