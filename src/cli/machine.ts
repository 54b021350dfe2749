/** The machine that tests run on, as the CI system or the operating system names it. */

import { hostname } from "node:os";
import type { CiSystemName } from "../rules/ci_systems.ts";
import type { EnvironmentVariables } from "./invocation.ts";

/** Unknown fields are absent; no field is ever empty. */
export type Machine = { host?: string; system?: string; image?: string };

/** The environment variables in which CI systems give the name of their machine, which may differ from its own. */
const HOST_VARIABLES: Partial<Record<CiSystemName, string>> = {
  github: "RUNNER_NAME",
  gitlab: "CI_RUNNER_DESCRIPTION",
  jenkins: "NODE_NAME",
  azure: "AGENT_MACHINENAME",
  buildkite: "BUILDKITE_AGENT_NAME",
  drone: "DRONE_STAGE_MACHINE",
  woodpecker: "CI_MACHINE",
};

/** The environment variables that name the image together. Those of GitHub and Azure are set on machines of theirs. */
const IMAGE_VARIABLES: Partial<Record<CiSystemName, readonly string[]>> = {
  github: ["ImageOS", "ImageVersion"],
  gitlab: ["CI_JOB_IMAGE"],
  azure: ["ImageOS", "ImageVersion"],
};

/** The maximum length that the server accepts. */
const MAX_LENGTH = 200;

const OWN = { host: hostname(), system: `${process.platform} ${process.arch}` };

/** `own`: the operating system's names. */
export function detectMachine(environment: EnvironmentVariables, system: CiSystemName | undefined, own = OWN): Machine {
  const read = (name: string | undefined) => (name === undefined ? "" : (environment[name]?.trim() ?? ""));
  const byCi = system === undefined ? "" : read(HOST_VARIABLES[system]);
  const images = (system === undefined ? undefined : IMAGE_VARIABLES[system]) ?? [];
  const names = {
    host: byCi || (own.host === "localhost" ? "" : own.host),
    system: own.system,
    image: images.map(read).filter(Boolean).join(" "),
  };
  const known = Object.entries(names).filter(([, name]) => name !== "");
  return Object.fromEntries(known.map(([field, name]) => [field, name.slice(0, MAX_LENGTH).toWellFormed()]));
}
