/** Refusals of operations, independent of HTTP. request/execute.ts translates them into answers. */

export class Refusal extends Error {
  override name = "Refusal";
  /** `absent`: it does not exist or belongs to another team; `invalid`: the request makes no sense. */
  readonly kind: "absent" | "invalid";

  constructor(kind: Refusal["kind"], message = "") {
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
