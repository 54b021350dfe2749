/** Collects the licences of what others wrote and a release contains: npm packages, Bun, PostgreSQL and the libraries that come with it. */

import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";

const TEXTS = join(import.meta.dir, "licences");
/** The name of the file with all licences, in executables and in npm packages. */
export const LICENCES_FILE = "THIRD_PARTY_LICENSES.txt";
const LINE = "-".repeat(80);

type Component = {
  name: string;
  licence: string;
  source: string;
  /** The files of the folder `lib` of the package of PostgreSQL that belong to it. */
  files?: RegExp;
  /** Names of texts in the folder `licences`. */
  texts: string[];
  note?: string;
};

const BUN: Component = {
  name: "Bun",
  licence: "MIT, with JavaScriptCore and other libraries under licences of their own",
  source: "https://github.com/oven-sh/bun/blob/main/LICENSE.md",
  texts: ["lgpl-2"],
  note:
    "Executables contain Bun, which contains JavaScriptCore under the GNU Library General Public License 2. The sources of both, how to link\n" +
    "them again, and the list of all libraries in Bun with their licences are at the address above. To use a Bun of your own, run Assay from\n" +
    "its sources or its npm packages.",
};

const POSTGRESQL: Component = {
  name: "PostgreSQL",
  licence: "PostgreSQL License",
  source: "https://www.postgresql.org",
  files: /^lib(?:ecpg|pg|pq)|^pkgconfig$|^postgresql$/,
  texts: ["postgresql"],
};

/** Libraries in the packages of PostgreSQL, of any platform. */
const LIBRARIES: Component[] = [
  { name: "ICU", licence: "Unicode", source: "https://icu.unicode.org", files: /^libicu/, texts: ["icu"] },
  {
    name: "libxml2",
    licence: "MIT",
    source: "https://gitlab.gnome.org/GNOME/libxml2",
    files: /^libxml2\./,
    texts: ["libxml2"],
  },
  {
    name: "libxslt",
    licence: "MIT",
    source: "https://gitlab.gnome.org/GNOME/libxslt",
    files: /^libxslt\./,
    texts: ["libxslt"],
  },
  { name: "zlib", licence: "zlib", source: "https://zlib.net", files: /^libz\./, texts: ["zlib"] },
  { name: "liblzma", licence: "public domain", source: "https://tukaani.org/xz", files: /^liblzma\./, texts: [] },
  {
    ...{ name: "OpenSSL 1", licence: "OpenSSL and SSLeay", source: "https://www.openssl.org" },
    ...{ files: /^lib(?:ssl|crypto)\.so\.1/, texts: ["openssl-1"] },
  },
  {
    ...{ name: "OpenSSL 3", licence: "Apache 2.0", source: "https://www.openssl.org" },
    ...{ files: /^lib(?:ssl|crypto)\.3\.dylib$|^lib(?:ssl|crypto)\.dylib$/, texts: ["apache-2"] },
  },
  {
    name: "OSSP uuid",
    licence: "MIT",
    source: "http://www.ossp.org/pkg/lib/uuid",
    files: /^libossp-uuid\./,
    texts: ["ossp-uuid"],
  },
  {
    name: "libuuid",
    licence: "BSD 3-Clause",
    source: "https://github.com/util-linux/util-linux",
    files: /^libuuid\./,
    texts: ["libuuid"],
  },
  {
    ...{ name: "MIT Kerberos", licence: "MIT and others", source: "https://web.mit.edu/kerberos" },
    ...{ files: /^lib(?:com_err|gssapi_krb5|k5crypto|krb5|krb5support)\./, texts: ["krb5"] },
  },
  {
    name: "libedit",
    licence: "BSD 3-Clause",
    source: "https://thrysoee.dk/editline",
    files: /^libedit\./,
    texts: ["libedit"],
  },
  { name: "LZ4", licence: "BSD 2-Clause", source: "https://lz4.org", files: /^liblz4\./, texts: ["lz4"] },
  {
    name: "Zstandard",
    licence: "BSD 3-Clause",
    source: "https://facebook.github.io/zstd",
    files: /^libzstd\./,
    texts: ["zstd"],
  },
  {
    ...{ name: "GNU libiconv and gettext", licence: "LGPL 2.1", source: "https://www.gnu.org/software/libiconv" },
    ...{ files: /^lib(?:iconv|intl)\./, texts: ["lgpl-2.1"] },
  },
];

async function writeComponent({ name, licence, source, texts, note }: Component): Promise<string> {
  const files = texts.map(async (text) => `\n${(await Bun.file(join(TEXTS, `${text}.txt`)).text()).trim()}\n`);
  return `${name} (${licence})\n${source}\n${note === undefined ? "" : `\n${note}\n`}${(await Promise.all(files)).join("")}`;
}

async function writePackage(source: string, name: string): Promise<string> {
  const folder = join(source, "node_modules", name);
  const { version, license }: { version: string; license: string } = await Bun.file(
    join(folder, "package.json"),
  ).json();
  const files = readdirSync(folder).filter((entry) => /^(un)?licen[cs]e|^notice|ui-bundle\.js\.license/i.test(entry));
  // The Unlicense asks for nothing.
  if (files.length === 0 && license !== "Unlicense") throw new Error(`${name} has no file with its licence`);
  const texts = files.map(async (file) => `\n${(await Bun.file(join(folder, file)).text()).trim()}\n`);
  return `${name} ${version} (${license})\n${(await Promise.all(texts)).join("")}`;
}

const joinParts = (parts: readonly string[]): string => parts.join(`\n${LINE}\n\n`);

/** The licences of npm packages, which require their text beside each copy. `source` is a checkout with its packages. */
export const packageLicences = async (source: string, names: readonly string[]): Promise<string> =>
  joinParts(await Promise.all(names.map((name) => writePackage(source, name))));

/** The components in the package of PostgreSQL of a platform. Throws for a library that is not listed above. */
export function postgresComponents(libraries: readonly string[]): Component[] {
  const all = [POSTGRESQL, ...LIBRARIES];
  const unknown = libraries.filter((file) => !all.some(({ files }) => files!.test(file)));
  if (unknown.length > 0)
    throw new Error(`tools/licences.ts names no licence of these libraries of PostgreSQL: ${unknown.join(", ")}`);
  return all.filter(({ files }) => libraries.some((file) => files!.test(file)));
}

/** The npm packages in the programs, by name. */
export function bundledPackages(inputs: readonly string[]): string[] {
  const names = inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return [...new Set(names)].sort();
}

type Executable = {
  /** Paths of the sources. */
  entrypoints: string[];
  /** The package of the built-in PostgreSQL; undefined: it is not in the executable. */
  postgres: string | undefined;
};

/** The licences of all that an executable contains. */
export async function executableLicences(source: string, { entrypoints, postgres }: Executable): Promise<string> {
  const { metafile } = await Bun.build({ entrypoints, target: "bun", metafile: true });
  const packages = await packageLicences(source, bundledPackages(Object.keys(metafile!.inputs)));
  const components =
    postgres === undefined
      ? []
      : postgresComponents(readdirSync(resolve(source, "node_modules", postgres, "native/lib")));
  const others = await Promise.all([BUN, ...components].map(writeComponent));
  const builder = postgres === undefined ? [] : [await packageLicences(source, [postgres])];
  return joinParts([...others, ...builder, packages]);
}
