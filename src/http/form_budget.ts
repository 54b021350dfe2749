/** The memory budget of all forms of pages, separate for visitors and for people who are signed in. */

const KIBIBYTE = 1_024;
const MEBIBYTE = 1_048_576;

/** Limits for one kind of forms: size of a form, time to arrive, and bytes of all forms being received. */
export type FormLimits = {
  maxBytes: number;
  maxSeconds: number;
  /** Maximum bytes of all forms of the kind that are being received. */
  totalBytes: number;
  /** The part of `totalBytes` that one sender may hold. */
  share: number;
};

/**
 * A sign-in form has some 300 bytes and arrives at once. The largest form for signed-in people is a text of 65,536 characters, or a .env
 * file, in which each character may take nine bytes when encoded.
 */
export const FORM_LIMITS = {
  public: { maxBytes: 32 * KIBIBYTE, maxSeconds: 15, totalBytes: 16 * MEBIBYTE, share: 1 / 2 },
  signedIn: { maxBytes: MEBIBYTE, maxSeconds: 60, totalBytes: 32 * MEBIBYTE, share: 1 / 4 },
} as const satisfies Record<string, FormLimits>;

type FormKind = keyof typeof FORM_LIMITS;

/** Memory that was taken for one form; it must be released on every way out. */
type FormHold = {
  /** Aborted when the form has to make room for another one. */
  signal: AbortSignal;
  release: () => void;
};

type Entry = { sender: string; bytes: number; abort: AbortController };

/** Forms of one kind. A Set keeps the order of insertion: its first entry has been arriving for the longest time. */
function createRoom({ totalBytes, share }: FormLimits) {
  const entries = new Set<Entry>();
  const heldBy = new Map<string, number>();
  let held = 0;

  function remove(entry: Entry): void {
    if (!entries.delete(entry)) return;
    held -= entry.bytes;
    const left = heldBy.get(entry.sender)! - entry.bytes;
    if (left > 0) heldBy.set(entry.sender, left);
    else heldBy.delete(entry.sender);
  }

  function dropOldest(isMatch: (entry: Entry) => boolean): void {
    for (const entry of entries) {
      if (!isMatch(entry)) continue;
      remove(entry);
      entry.abort.abort();
      return;
    }
  }

  return {
    held: () => held,
    open(sender: string, bytes: number): FormHold {
      while ((heldBy.get(sender) ?? 0) + bytes > totalBytes * share) dropOldest((entry) => entry.sender === sender);
      while (held + bytes > totalBytes) dropOldest(() => true);
      const entry: Entry = { sender, bytes, abort: new AbortController() };
      entries.add(entry);
      held += bytes;
      heldBy.set(sender, (heldBy.get(sender) ?? 0) + bytes);
      return { signal: entry.abort.signal, release: () => remove(entry) };
    },
  };
}

/**
 * If the budget is exceeded, the form that has been arriving for the longest time is refused: a form sent by a person arrives within
 * moments, a slow attack does not. Requests never wait.
 */
export function createFormBudget(limits: Record<FormKind, FormLimits> = FORM_LIMITS) {
  const rooms = { public: createRoom(limits.public), signedIn: createRoom(limits.signedIn) };
  return {
    limits,
    /** `sender` is the block of addresses, or the account, that the form comes from; `bytes` is its maximum size. */
    open: (kind: FormKind, sender: string, bytes: number): FormHold =>
      rooms[kind].open(sender, Math.min(Math.max(bytes, 1), limits[kind].maxBytes)),
    /** Bytes, now. */
    held: (): number => rooms.public.held() + rooms.signedIn.held(),
  };
}

export type FormBudget = ReturnType<typeof createFormBudget>;
