/** Refusals of operations, independent of HTTP. request/execute.ts translates them into answers. */

/**
 * `absent`: there is no such thing, or it is not the caller's; `invalid`: what is asked for makes no sense; `revoked`: the
 * caller's key is not valid any more; `expired`: the client does not wait any longer; `taken over`: another request with the
 * same Idempotency-Key is executed instead.
 */
export type RefusalKind = "absent" | "invalid" | "revoked" | "expired" | "taken over";

export class Refusal extends Error {
  override name = "Refusal";
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message = "") {
    super(message);
    this.kind = kind;
  }
}

export function refuse(message: string): never {
  throw new Refusal("invalid", message);
}

export function refuseAbsent(): never {
  throw new Refusal("absent");
}
