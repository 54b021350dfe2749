/** The five error codes, their statuses, and how one is thrown. */

export const STATUS = {
  VALIDATION_ERROR: 400,
  UNAUTHORIZED: 401,
  NOT_FOUND: 404,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
} as const;

export type ErrorCode = keyof typeof STATUS;

export class Problem extends Error {
  override name = "Problem";
  readonly code: ErrorCode;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }

  get status(): number {
    return STATUS[this.code];
  }

  get body(): { error: { code: ErrorCode; message: string } } {
    return { error: { code: this.code, message: this.message } };
  }
}

export function fail(code: ErrorCode, message: string, headers?: Record<string, string>): never {
  throw new Problem(code, message, headers);
}

/** Uses one text for "does not exist" and "no access", so that clients cannot distinguish them. */
export function absent(): never {
  fail("NOT_FOUND", "Not found, or this key has no access to it");
}
