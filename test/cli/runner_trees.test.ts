/** A task of `assay runner` finds the commit of its execution in its working directory, and nothing of earlier tasks. */

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createFolder } from "../commands.ts";
import { createHarness } from "../harness.ts";
import { createRunners, report, stopped } from "../runners.ts";

const harness = await createHarness();
const { startRunner, fresh, start, logOf, ends } = createRunners(harness);

const GIT = "git -c user.name=a -c user.email=a@example.com";
/** A report whose only test fails unless the fee of the commit is 5. */
const FEE = `if grep -q 5 fee; then ${report("p")}; else ${report("f")}; fi`;

const sh = async (directory: string, script: string) =>
  (await Bun.$`sh -ec ${script}`.cwd(directory).quiet()).stdout.toString().trim();

/** A repository whose main is right and whose branch feature/cart is not, and a clone of it. */
async function createShop() {
  const folder = createFolder({});
  const [source, clone] = [join(folder, "shop"), join(folder, "clone")];
  await sh(
    folder,
    `${GIT} init -q -b main shop; cd shop; echo 5 > fee; echo '*.db' > .gitignore; echo '*.xml' >> .gitignore
     echo 'cat *.db 2>/dev/null; echo x > state.db' > test.sh; git add .; ${GIT} commit -qm main
     git checkout -qb feature/cart; echo 6 > fee; ${GIT} commit -qam broken; git checkout -q main; git clone -q . ../clone`,
  );
  const [main, feature] = (await sh(source, "git rev-parse main feature/cart")).split("\n");
  return { source, clone, main: main!, feature: feature! };
}

/** As docs/runner.md has it. */
const BEFORE = [
  'git fetch --quiet --depth 1 --end-of-options origin "${ASSAY_COMMIT:-HEAD}"',
  "git checkout --quiet --force FETCH_HEAD",
];

describe("a branch without a commit", () => {
  test.each(["checkout", "before"])("is tested at its newest commit, which is stored, with %s", async (kind) => {
    const { source, clone, feature } = await createShop();
    const own = kind === "checkout" ? { checkout: { git: source } } : { before: BEFORE, workingDirectory: clone };
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit: { ...own, command: FEE, report: "*.xml" } } });
    const red = await ends(project, await start(project, { branch: "feature/cart" }));
    expect([red.status, red.failed, red.commit]).toEqual(["failed", 1, feature]);
    await stopped(runner);
  });

  test("is the same commit for all tasks, also if the branch has moved meanwhile", async () => {
    const { source, clone, feature } = await createShop();
    const move = `cd ${source} && git checkout -q feature/cart && echo 5 > fee && ${GIT} commit -qam fixed`;
    const tasks = {
      first: { checkout: { git: source }, command: `${FEE}; ${move}`, report: "*.xml" },
      second: { before: BEFORE, workingDirectory: clone, command: FEE, report: "*.xml" },
      third: { checkout: { git: source }, command: FEE, report: "*.xml" },
    };
    const project = await fresh();
    const runner = startRunner({ place: project, tasks });
    const ended = await ends(project, await start(project, { branch: "feature/cart", tasks: Object.keys(tasks) }));
    expect([ended.commit, ended.failed, ended.passed]).toEqual([feature, 3, 0]);
    await stopped(runner);
  });

  test("is not tested in a working directory at another commit, and the reason says so", async () => {
    const { clone, main, feature } = await createShop();
    const project = await fresh();
    const unit = { workingDirectory: clone, command: FEE, report: "*.xml" };
    const runner = startRunner({ place: project, tasks: { unit } });
    const other = await ends(project, await start(project, { branch: "feature/cart" }));
    expect([other.status, other.passed]).toEqual(["failed", 0]);
    expect(other.tasks[0].status).toBe("incomplete");
    expect(other.tasks[0].reason).toContain(
      `The working directory is at commit ${main.slice(0, 12)}, but the execution tests ${feature} of the branch "feature/cart": check out "$ASSAY_COMMIT" in "before"`,
    );
    const gone = await ends(project, await start(project, { branch: "gone" }));
    expect(gone.tasks[0].reason).toContain('the remote "origin" of the checkout has no branch "gone"');
    const without = await ends(project, await start(project));
    expect([without.status, without.commit]).toEqual(["passed", main]);
    await stopped(runner);
  });
});

describe("a work tree", () => {
  test("has nothing that an earlier task of the same commit left, and is prepared once", async () => {
    const { source, feature } = await createShop();
    const prepares = join(source, "../prepares");
    const checkout = { git: source, prepare: `echo prepared >> ${prepares}; sed -i s/6/7/ fee`, keep: 1 };
    const unit = { checkout, command: `sh test.sh; cat fee; git add -A; ${report("p")}`, report: "*.xml" };
    const project = await fresh();
    const runner = startRunner({ place: project, tasks: { unit } });
    for (let run = 0; run < 3; run++) {
      const id = await start(project, { commit: feature });
      expect((await ends(project, id)).status).toBe("passed");
      expect((await logOf(project, id)).text.split("\n").at(-2)).toBe("7");
    }
    expect(await Bun.file(prepares).text()).toBe("prepared\n");
    await stopped(runner);
  });
});
