import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { detectMachine } from "../../src/cli/machine.ts";

const OWN = { host: "5759d0322a67", system: "linux x64" };

describe("the machine", () => {
  test.each([
    ["github", { RUNNER_NAME: "ci-3", ImageOS: "ubuntu24", ImageVersion: "20261115.1.0" }, "ubuntu24 20261115.1.0"],
    ["github", { RUNNER_NAME: "ci-3", ImageOS: "ubuntu24" }, "ubuntu24"],
    ["gitlab", { CI_RUNNER_DESCRIPTION: "ci-3", CI_JOB_IMAGE: "node:24" }, "node:24"],
    ["azure", { AGENT_MACHINENAME: "ci-3", ImageOS: "win22", ImageVersion: "1.2" }, "win22 1.2"],
    ["jenkins", { NODE_NAME: "ci-3" }, undefined],
    ["buildkite", { BUILDKITE_AGENT_NAME: "ci-3" }, undefined],
    ["drone", { DRONE_STAGE_MACHINE: "ci-3" }, undefined],
    ["woodpecker", { CI_MACHINE: "ci-3" }, undefined],
  ] as const)("has the name and the image that %s gives it (%#)", (system, variables, image) => {
    const others = { HOSTNAME: "another" };
    const expected = { host: "ci-3", system: "linux x64", ...(image === undefined ? {} : { image }) };
    expect(detectMachine({ ...others, ...variables }, system, OWN)).toEqual(expected);
  });

  test("has its own name where no CI system gives it one, or gives an empty one", () => {
    const variables = { RUNNER_NAME: "ci-3", CI_JOB_IMAGE: "node:24" };
    for (const system of [undefined, "circleci", "jenkins"] as const)
      expect(detectMachine(variables, system, OWN)).toEqual(OWN);
    expect(detectMachine({ RUNNER_NAME: " ", ImageOS: "" }, "github", OWN)).toEqual(OWN);
    expect(detectMachine({}, undefined)).toMatchObject({ system: `${process.platform} ${process.arch}` });
    if (hostname() !== "localhost") expect(detectMachine({}, undefined)).toMatchObject({ host: hostname() });
  });

  test("has no name where its own could be that of any machine", () => {
    expect(detectMachine({}, undefined, { ...OWN, host: "localhost" })).toEqual({ system: "linux x64" });
  });

  test("has names that the server takes, however long the variables are", () => {
    const image = `${"r".repeat(199)}\u{1f600}`;
    const { host, image: cut } = detectMachine(
      { CI_RUNNER_DESCRIPTION: "h".repeat(500), CI_JOB_IMAGE: image },
      "gitlab",
    );
    expect(host).toBe("h".repeat(200));
    expect([cut!.length, cut!.isWellFormed()]).toEqual([200, true]);
  });
});
