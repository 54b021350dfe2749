/**
 * Builds the npm packages: `bun tools/npm_packages.ts [--out FOLDER]`. The dependencies of server and command line are bundled with our
 * patches, except for Bun and the programs of PostgreSQL. Needs npm.
 */

import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import packageJson from "../package.json" with { type: "json" };
import { writeClient } from "./client.ts";
import { run } from "./executable.ts";
import { bundledPackages, LICENCES_FILE, packageLicences } from "./licences.ts";
import { runTool } from "./tool.ts";

const ROOT = resolve(import.meta.dir, "..");

type NpmPackage = {
  name: string;
  description: string;
  /** The names of the command. */
  commands: string[];
  /** The program, then files of the source that it starts by their path. */
  entrypoints: [main: string, ...others: string[]];
  /** What the launcher runs if it has no arguments. */
  defaultCommand?: string;
  /** Folders of the source that the program reads. */
  folders: string[];
  optionalDependencies?: Record<string, string>;
};

export const NPM_PACKAGES: NpmPackage[] = [
  {
    name: "assay-server",
    description: "Self-hosted service that stores test results and runs tests, with PostgreSQL included",
    commands: ["assay-server"],
    entrypoints: ["src/cli/assay.ts", "src/server/upload_worker.ts"],
    defaultCommand: "start",
    folders: ["sql"],
    optionalDependencies: packageJson.optionalDependencies,
  },
  {
    name: "assay-cli",
    description: "Uploads test reports to Assay from CI jobs, explains failures, and runs tests",
    commands: ["assay-cli", "assay"],
    entrypoints: ["src/cli/assay_cli.ts"],
    folders: [],
  },
];

/** The version of Bun that Assay is tested with. */
const BUN_VERSION = packageJson.engines.bun.replace(">=", "");

const manifestOf = ({ name, description, commands, optionalDependencies }: NpmPackage) => ({
  name,
  version: packageJson.version,
  description,
  type: "module",
  bin: Object.fromEntries(commands.map((command) => [command, `bin/${name}`])),
  os: ["linux", "darwin"],
  cpu: ["x64", "arm64"],
  dependencies: { bun: BUN_VERSION },
  ...(optionalDependencies ? { optionalDependencies } : {}),
});

/** Bundles the programs into `folder`, with everything that they import, and returns the names of the bundled npm packages. */
async function bundle({ name: command, entrypoints }: NpmPackage, folder: string): Promise<string[]> {
  const inputs: string[] = [];
  for (const [index, entrypoint] of entrypoints.entries()) {
    const name = index === 0 ? "main" : nameOf(entrypoint);
    const { metafile, outputs } = await Bun.build({
      entrypoints: [join(ROOT, entrypoint)],
      target: "bun",
      define: { PACKAGE_COMMAND: JSON.stringify(`npx ${command}`) },
      metafile: true,
    });
    await Bun.write(join(folder, `${name}.js`), outputs[0]!);
    // The main program starts the others by the name of their source.
    if (index > 0) await Bun.write(join(folder, `${name}.ts`), `import "./${name}.js";\n`);
    inputs.push(...Object.keys(metafile!.inputs));
  }
  return bundledPackages(inputs);
}

const nameOf = (entrypoint: string) => entrypoint.split("/").at(-1)!.replace(/\.ts$/, "");

/** Writes the files of a package into `folder`. */
async function writePackage(npmPackage: NpmPackage, folder: string): Promise<void> {
  const { name, folders, defaultCommand } = npmPackage;
  const bundled = await bundle(npmPackage, join(folder, "dist/program"));
  const launcher = await Bun.file(join(ROOT, "tools/npm/launch.sh")).text();
  const withDefault = defaultCommand === undefined ? "" : `[ $# -gt 0 ] || set -- ${defaultCommand}\n`;
  await Bun.write(join(folder, "bin", name), launcher.replace(/^(?=package=)/m, withDefault));
  chmodSync(join(folder, "bin", name), 0o755);
  await Bun.write(join(folder, "package.json"), `${JSON.stringify(manifestOf(npmPackage), null, 2)}\n`);
  await Bun.write(join(folder, LICENCES_FILE), await packageLicences(ROOT, bundled));
  cpSync(join(ROOT, "tools/npm", name, "README.md"), join(folder, "README.md"));
  for (const source of folders) cpSync(join(ROOT, source), join(folder, source), { recursive: true });
}

/** Packs all packages into the folder `out`, and returns the paths of their tarballs, by name. */
export async function packNpmPackages(out: string): Promise<Record<string, string>> {
  const place = mkdtempSync(join(tmpdir(), "assay-npm-"));
  try {
    mkdirSync(out, { recursive: true });
    const pack = async (name: string, write: (folder: string) => Promise<void>) => {
      const folder = join(place, name);
      await write(folder);
      await run(["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", resolve(out)], folder);
      return [name, join(resolve(out), `${name}-${packageJson.version}.tgz`)] as const;
    };
    const programs = NPM_PACKAGES.map((one) => pack(one.name, (folder) => writePackage(one, folder)));
    return Object.fromEntries(await Promise.all([...programs, pack("assay-client", writeClient)]));
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

if (import.meta.main)
  await runTool(
    "Usage: bun tools/npm_packages.ts [--out FOLDER]\n\nPacks assay-server, assay-cli and assay-client into FOLDER (default: dist). Needs npm.",
    async () => {
      const { values } = parseArgs({ options: { out: { type: "string", default: "dist" } } });
      for (const path of Object.values(await packNpmPackages(values.out)))
        console.log(`${relative(process.cwd(), path)}: ${(Bun.file(path).size / 1e6).toFixed(1)} MB`);
    },
  );
