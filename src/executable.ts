/** The single executable: the files that are embedded in it, and how a part of the program is started. */

export type EmbeddedFile = { name: string; blob: Blob };

/** Returns the embedded files whose name ends with `ending`; none when the program runs from its sources. */
export const embeddedFiles = (ending: string): EmbeddedFile[] =>
  (Bun.embeddedFiles as readonly (Blob & { name: string })[])
    .filter(({ name }) => name.endsWith(ending))
    .map((blob) => ({ name: blob.name, blob }));

/** Returns the licences of the software of others in this executable. */
export const readLicences = async (): Promise<string> =>
  (await embeddedFiles("THIRD_PARTY_LICENSES.txt")[0]?.blob.text()) ??
  "This program is no executable: each package in node_modules has its licence, and npm packages of Assay have the file THIRD_PARTY_LICENSES.txt";

/** The command that starts a package of npm; tools/npm_packages.ts defines it. */
declare const PACKAGE_COMMAND: string;
const packageCommand = typeof PACKAGE_COMMAND === "string" ? PACKAGE_COMMAND : undefined;

/** The command by which the operator of this server starts the command line. */
export const OPERATOR_COMMAND = packageCommand ?? (Bun.isStandaloneExecutable ? "assay" : "bun run assay");

/** The command by which the operator starts the server. */
export const START_COMMAND = packageCommand ?? (Bun.isStandaloneExecutable ? "assay start" : "bun start");
