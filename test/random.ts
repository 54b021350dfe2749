/** Chance that a seed repeats: what happens in one simulated part does not shift what happens in another. */

export type Random = ReturnType<typeof createRandom>;

/** `name` tells the streams of one seed apart. */
export function createRandom(seed: number, name = "") {
  let state = Bun.hash.xxHash32(name, seed);
  /** From 0 to below 1: mulberry32. */
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  return {
    next,
    /** Both ends are included. */
    integer,
    pick,
    chance: (odds: number): boolean => next() < odds,
    between: (from: number, to: number): number => from + next() * (to - from),
    /** Each order of magnitude is as likely as another. */
    logBetween: (from: number, to: number): number => from * (to / from) ** next(),
    /** Waiting time between things that happen by themselves. */
    wait: (mean: number): number => -Math.log(1 - next()) * mean,
    /** So many different ones, or all where there are fewer. */
    sample: <T>(list: readonly T[], count: number): T[] => {
      const left = [...list];
      return Array.from(
        { length: Math.min(count, list.length) },
        () => left.splice(integer(0, left.length - 1), 1)[0]!,
      );
    },
    text: (length: number, alphabet: string): string =>
      Array.from({ length }, () => alphabet[integer(0, alphabet.length - 1)]).join(""),
  };
}
