/** Distinguishes words that a person chose from words that a machine drew: pod names, hashes, ids of any alphabet. */

/** Letters that may follow each letter in words of English and of programs; other pairs are rare. */
const FOLLOWERS: Record<string, string> = Object.fromEntries(
  (
    "abcdefgiklmnprstuvwxy babcdefijlmnorstuy cacdefhiklmnoprstuy dabcdefgijlnoprstuy eabcdefghiklmnopqrstuvwxy " +
    "facdefilnorstuy gaceghilmnorstu haeilmorstuy iabcdefgklmnoprstvxz jaeosu kadegilnostw labcdefiklmnopstuvy " +
    "mabdeilmopstuy nabcdefghiklmnoprstuvy oabcdefgiklmnoprstuvwx pacdefghiklnoprstuy qlsu rabcdefgiklmnoprstuvwy " +
    "sacdefghiklmnopqrstuwy tabcdefhilmnoprstuvwy uabcdefgilmnoprst vaeio wadehinors xaceimpt yaceilmnopst zaei"
  )
    .split(" ")
    .map((letters) => [letters[0]!, letters.slice(1)]),
);

/** 1 at the index of each pair that is not rare: the first letter times 128 and the second one. */
const USUAL_PAIRS = new Uint8Array(128 * 128);
for (const [first, seconds] of Object.entries(FOLLOWERS))
  for (const second of seconds) USUAL_PAIRS[first.charCodeAt(0) * 128 + second.charCodeAt(0)] = 1;

/** Counts rare pairs of neighbouring letters: six random letters have three, one word in a hundred has two. */
function countRarePairs(letters: string): number {
  const lower = letters.toLowerCase();
  let rare = 0;
  for (let at = 1, first = lower.charCodeAt(0); at < lower.length; at++) {
    const second = lower.charCodeAt(at);
    if (first > 127 || second > 127 || USUAL_PAIRS[first * 128 + second] === 0) rare++;
    first = second;
  }
  return rare;
}

/** Whether a word of small letters is no word. */
const isRandomWord = (letters: string): boolean => {
  const rare = letters.length < 5 ? 0 : countRarePairs(letters);
  return rare >= 2 && rare * 4 >= letters.length;
};

/** Names whose digits are part of the name, not a count. */
const NAMED =
  /^(?:utf(?:8|16|32|8mb[34])|latin1|base(?:16|32|58|64)(?:url)?|md[45]|sha(?:1|2|3|224|256|384|512)|hs256|rs256|es256|ed25519|crc32|aes(?:128|192|256)|x509|oauth[12]|ipv[46]|https?[123]|h[23]|http2\w*|s3|ec2|r53|k8s|k3s|i18n|l10n|a11y|e2e|b2[bc]|p2p|o11y|d3|web3|log4j2?|neo4j|db2|mp[34]|m4a|h26[45]|gb18030|win(?:32|64)|x(?:32|64|86)|i[3-6]86|(?:arm|amd|ppc|mips|riscv)\d{1,2}\w{0,3}|armv\dl?|es(?:[356]|20\d\d)|[uif](?:8|16|32|64|128)|u?int(?:8|16|32|64|128)(?:_t)?|float(?:16|32|64)|vec[234]|mat[234]|[1-5]xx|\d{1,2}(?:st|nd|rd|th|d|x|fa)|p(?:50|75|90|95|99)|[a-z]v?\d)$/i;

/** Short words that names in camel case are made of. */
const SHORT = new Set(
  "an api as at be by cb cd ci cn css db do dom ex fn fs get go gt has html http id if in ip io is it js jsx lt max md min my new no ns of ok on op or os pdf pk qa re rx sc sdk set sh sql src ssl ssr tag tcp tls to ts tx udp ui up uri url us vm we ws xml xs".split(
    " ",
  ),
);

/** Whether letters look like class names of styled-components: the pieces between capitals are too short to be chosen by a person. */
function isRandomCase(letters: string): boolean {
  if (letters.length < 6) return false;
  const chunks = letters.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  const strange = chunks.filter((chunk) => !SHORT.has(chunk.toLowerCase()));
  const rare = strange.reduce((sum, chunk) => sum + (/^[A-Z]+$/.test(chunk) ? 0 : countRarePairs(chunk)), 0);
  if (rare >= 2 || countRarePairs(letters) * 2 >= letters.length) return true;
  if (strange.length >= 3 && chunks.length * 2 >= letters.length) return true;
  return strange.length >= 2 && chunks.length * 2.5 >= letters.length && countRarePairs(letters) >= 1;
}

type Kind = "word" | "number" | "random";

/** A number with its unit. */
const MEASURED = /^\d+(?:px|pt|r?em|ch|v[hw]|fr|deg|dpi|ppi|fps|hz|k|x|[kmgt]i?b?|bit|cpu|rpm|rps|qps)$/i;

/** `inCompound`: other parts stand beside it, as in `css-abcdef`. */
function kindOf(part: string, inCompound: boolean): Kind {
  if (/^\d+$/.test(part)) return part.length >= 7 ? "random" : "number";
  if (NAMED.test(part) || MEASURED.test(part)) return "word";
  // The alphabet of Kubernetes has no vowels.
  if (inCompound && /^[bcdfghjklmnpqrstvwxz2456789]{5,10}$/.test(part) && !/^(?:https|html5|bcdfg)$/.test(part))
    return "random";
  const digits = part.replace(/\D+/g, "").length;
  if (digits === 0) {
    if (/^[A-Z]+$/.test(part)) return part.length >= 16 && countRarePairs(part) * 4 > part.length ? "random" : "word";
    if (/[a-z][A-Z]/.test(part)) return isRandomCase(part) ? "random" : "word";
    return isRandomWord(part) ? "random" : "word";
  }
  if (part.length < 4) return "word";
  if (/^\d/.test(part) || (/^[0-9a-f]{7,}$/i.test(part) && digits > 1)) return "random";
  // A word with a number, such as user42 and Float32Array, and not a piece of a hash that happens to be readable.
  const runs = part.match(/[A-Za-z]+/g)!;
  const isReadable = runs.every((run) => countRarePairs(run) === 0 && !/[a-z][A-Z](?:[A-Z]|$)/.test(run));
  const longest = Math.max(...runs.map((run) => run.length));
  if (isReadable && runs.length === 1 && digits <= 5 && longest >= (digits <= 2 ? 2 : 3)) return "word";
  return isReadable && runs.length === 2 && longest >= 4 && runs[1]!.length >= 3 && digits <= 3 ? "word" : "random";
}

const isAcronym = (part: string): boolean => /^[A-Z]{2,}$/.test(part);

const STYLED = /^((?:sc|css|svelte|jsx)-)(?=[\w-]*[A-Z0-9])[\w-]{5,8}$/;
/** The end of a name of CSS modules, before its suffix. */
const MODULE = /[A-Za-z0-9]_[A-Za-z0-9]/;

/** Returns a class name without the suffix that CSS modules or styled-components have added to it; undefined: it has none. */
function withoutClassHash(word: string): string | undefined {
  const [, styled] = STYLED.exec(word) ?? [];
  if (styled !== undefined) return styled;
  for (let length = 5; length <= 8; length++) {
    const name = word.slice(0, -length);
    if (!name.endsWith("__") || !/[A-Z0-9]/.test(word.slice(-length))) continue;
    // A hyphen ends the part that CSS modules have made.
    if (MODULE.test(name.slice(name.lastIndexOf("-") + 1, -2))) return name;
  }
  return undefined;
}

/** Whether a word looks like nanoid: 21 letters of both cases, digits, hyphens and underscores at random positions. */
function isNanoid(word: string): boolean {
  if (word.length !== 21 || !/[a-z]/.test(word) || !/[A-Z]/.test(word)) return false;
  const pieces = word.match(/[A-Z]?[a-z]+|[A-Z]+|\d+|[-_]+/g)!.length;
  const words = word.match(/[A-Z]?[a-z]{3,}/g) ?? [];
  return pieces >= 10 || (pieces >= 5 && words.every((one) => one.length < 4 || countRarePairs(one) > 0));
}

/**
 * Replaces drawn parts of a word of letters, digits, hyphens and underscores with `<id>`, and numbers with `<n>`. Text after a drawn part
 * belongs to it unless it is a real word.
 */
export function plainWord(word: string): string {
  // Most words are of small letters.
  if (/^[a-z]+$/.test(word)) return isRandomWord(word) ? "<id>" : word;
  if (isNanoid(word)) return "<id>";
  const named = withoutClassHash(word);
  if (named !== undefined) return `${named}<id>`;
  const solid = word.replace(/[-_]+/g, "");
  // Alphabets of ids hold the hyphen and the underscore as well; those have both cases.
  const isMixed =
    solid.length === word.length || (/[A-Z]/.test(solid) && /[a-z]/.test(solid) && !/^[a-z]{2,}[-_]/.test(word));
  const words = word.match(/[A-Z]?[a-z]{5,}/g) ?? [];
  if (solid.length >= 16 && isMixed && /\d[A-Za-z]/.test(solid) && words.every((one) => countRarePairs(one) > 0))
    return "<id>";
  const parts = word.split(/([-_]+)/);
  const inCompound = parts.length > 1;
  const kinds = parts.map((part, index) => (index % 2 === 1 || part === "" ? "word" : kindOf(part, inCompound)));
  const first = kinds.indexOf("random");
  let plain = "";
  for (let index = 0; index < parts.length; index += 2) {
    const part = parts[index]!;
    const isHead = index > 0 && index < first && part.length <= 2;
    const isTail = first !== -1 && index > first && (kinds[index] !== "word" || (part.length <= 5 && !isAcronym(part)));
    if (isHead || isTail) continue;
    plain += index === 0 ? "" : parts[index - 1]!;
    plain += kinds[index] === "random" ? "<id>" : NAMED.test(part) ? part : part.replace(/\d+/g, "<n>");
  }
  return plain;
}
