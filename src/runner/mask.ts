/** Hides secret values in what leaves a runner, in every form in which tools print them. */

import { Trie } from "./automaton.ts";
import { base64FormsOf, commonFormsOf, hexOf, rareFormsOf } from "./encodings.ts";
import { createMaskStream, createMatcher } from "./mask_stream.ts";

/** A shorter value would black out whole logs, and is easily guessed anyway. In characters. */
const MIN_VALUE_LENGTH = 6;
/** Lines of a value are often ordinary text: what is shorter or more monotonous is hidden only with the lines around it. */
const MIN_LINE_LENGTH = 8;
const MIN_DISTINCT_CHARACTERS = 4;

/** How many bytes all forms of all secrets may have, without their common beginnings. Each takes about 10 bytes of memory. */
const MAX_PATTERN_BYTES = 2 ** 23;

/** Other tasks go on while a large text is masked. */
const BYTES_BETWEEN_YIELDS = 262_144;

export type Mask = {
  /** Masks a whole text of UTF-8; yields to the event loop. Returns the same bytes where there is nothing to hide. */
  bytes(bytes: Uint8Array): Promise<Uint8Array>;
  /** For short texts: does not yield. */
  text(text: string): string;
  /** Masks a text that comes in pieces: what may be the beginning of a secret is kept until that is decided. */
  stream(): { push(bytes: Uint8Array): Uint8Array; end(): Uint8Array };
  /** Whether there is nothing to hide. */
  isEmpty: boolean;
  /** False where the values are so large that only the common forms of them are hidden. */
  hidesRareForms: boolean;
};

/** The values are too large to be hidden within a reasonable amount of memory. */
export class MaskError extends Error {
  override name = "MaskError";
}

/**
 * Hides each of the secret `values` as a whole and line by line, as it is and as encodings.ts lists it. What two of them
 * cover together is hidden as one. Takes time linear in the text, whatever the values are. Throws a MaskError.
 */
export function createMask(values: readonly string[]): Mask {
  const texts = textsOf(values);
  const { tries, hidesRareForms } = createTries(texts);
  const matcher = createMatcher(tries);
  const isEmpty = texts.size === 0;
  const stream = () => createMaskStream(isEmpty ? [] : matcher);
  return {
    isEmpty,
    hidesRareForms,
    stream,
    text(text) {
      if (isEmpty) return text;
      const { push, end } = stream();
      return new TextDecoder().decode(Buffer.concat([push(new TextEncoder().encode(text)), end()]));
    },
    async bytes(bytes) {
      if (isEmpty) return bytes;
      const { push, end } = stream();
      const parts: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += BYTES_BETWEEN_YIELDS) {
        if (at > 0) await new Promise(setImmediate);
        parts.push(push(bytes.subarray(at, at + BYTES_BETWEEN_YIELDS)));
      }
      return Buffer.concat([...parts, end()]);
    },
  };
}

/** Tasks of one environment have the same secrets, and share a mask as long as one of them runs. */
export function createMaskCache(): (values: readonly string[]) => Mask {
  const masks = new Map<string, WeakRef<Mask>>();
  return (values) => {
    for (const [key, mask] of masks) if (mask.deref() === undefined) masks.delete(key);
    // The secrets themselves are not to outlive their tasks.
    const key = new Bun.CryptoHasher("sha256").update(JSON.stringify(values)).digest("base64");
    const mask = masks.get(key)?.deref() ?? createMask(values);
    masks.set(key, new WeakRef(mask));
    return mask;
  };
}

/** Returns the texts to hide: the values, the values without surrounding white space, and their lines that are long and varied enough. */
function textsOf(values: readonly string[]): Set<string> {
  const texts = new Set<string>();
  for (const value of values.map((value) => value.toWellFormed())) {
    for (const text of [value, value.trim()])
      if (text.length >= MIN_VALUE_LENGTH && text.trim() !== "") texts.add(text);
    for (const line of value.split(/[\r\n]/)) {
      const text = line.trim();
      if (text.length >= MIN_LINE_LENGTH && new Set(text).size >= MIN_DISTINCT_CHARACTERS) texts.add(text);
    }
  }
  return texts;
}

function createTries(texts: ReadonlySet<string>) {
  const tries = { plain: new Trie(), base64: new Trie(), hex: new Trie() };
  let room = MAX_PATTERN_BYTES;
  /** False where there is no room for it. */
  const add = (trie: Trie, form: string): boolean => {
    const bytes = Buffer.from(form);
    if (bytes.length >= room) return false;
    room -= trie.add(bytes);
    return true;
  };
  for (const text of texts) {
    const hasRoom =
      commonFormsOf(text).every((form) => add(tries.plain, form)) &&
      base64FormsOf(text).every((form) => add(tries.base64, form)) &&
      add(tries.hex, hexOf(text));
    if (!hasRoom) throw new MaskError("The secret variables are too large to be masked");
  }
  const hidesRareForms = [...texts].every((text) => rareFormsOf(text).every((form) => add(tries.plain, form)));
  return { tries, hidesRareForms };
}
