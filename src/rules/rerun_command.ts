/** The command that runs only the test cases that failed, from a preset or a template of assay.yaml: docs/rerun.md. */

/** Tools whose way of selecting tests is known. */
export const PRESETS = [
  "jest",
  "vitest",
  "bun",
  "playwright",
  "cypress",
  "pytest",
  "rspec",
  "go",
  "maven",
  "dotnet",
] as const;
export type Preset = (typeof PRESETS)[number];

/** What stands for the failed cases in a template; the name of a preset in braces is what that would add. */
export const PLACEHOLDERS = ["files", "names", "pattern", "namePattern", "list"] as const;

const isPreset = (rerun: string): rerun is Preset => (PRESETS as readonly string[]).includes(rerun);

/** Why a text is neither a preset nor a template: "expected …"; null when it is one. */
export function mistakeInRerun(rerun: string): string | null {
  if (isPreset(rerun)) return null;
  const found = [...rerun.matchAll(/(?<!\$)\{(\w+)\}/g)].map(([, name]) => name!);
  const known: readonly string[] = [...PLACEHOLDERS, ...PRESETS];
  const unknown = found.find((name) => !known.includes(name));
  if (unknown !== undefined) return `expected {${known.join("}, {")}} as placeholders and not {${unknown}}`;
  if (found.length === 0)
    return `expected one of ${PRESETS.join(", ")}, or a command with a placeholder such as {files}`;
  return null;
}
