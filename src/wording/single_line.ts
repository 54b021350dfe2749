/** Keeps free texts on one line. */

/** Replaces control characters, line breaks and unassigned characters: a slug or a reason must not break the line that has it. */
export const singleLine = (text: string): string => text.replace(/\p{C}+/gu, " ");
