/** The private key of a GitHub App, however its line breaks have survived. */

import { createPrivateKey } from "node:crypto";
import * as v from "valibot";

const EXPECTED_KEY = "expected an RSA private key in PEM, as GitHub gives it to an App";

/** The key with line breaks where PEM has them: password fields and environment variables lose them. Undefined: it is none. */
function toPem(text: string): string | undefined {
  const match = /-----BEGIN ((?:RSA )?PRIVATE KEY)-----([^-]+)-----END (?:RSA )?PRIVATE KEY-----/.exec(text);
  if (!match) return undefined;
  const [, label, body] = match as unknown as [string, string, string];
  const lines = body.replace(/\\n|\s/g, "").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

function isPrivateKey(text: string): boolean {
  try {
    return createPrivateKey(toPem(text) ?? "").asymmetricKeyType === "rsa";
  } catch {
    return false;
  }
}

/** Comes out as PEM. */
export const privateKey = v.pipe(
  v.string(EXPECTED_KEY),
  v.maxLength(10_000, EXPECTED_KEY),
  v.check(isPrivateKey, EXPECTED_KEY),
  v.transform((text) => toPem(text) ?? ""),
  v.description("Write-only: null in answers"),
  v.metadata({ secret: true }),
);
