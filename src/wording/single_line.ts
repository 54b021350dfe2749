/** Keeps free texts on one line. */

/** Replaces control characters, line breaks and unassigned characters, because a slug or a reason must stay on one line. */
export const singleLine = (text: string): string => text.replace(/\p{C}+/gu, " ");
