/** The live stream over real HTTP. */

import { expect, test } from "bun:test";
import { createHarness, junit } from "../harness.ts";
import { openStream } from "../event_stream.ts";

const { ask, acme, url } = await createHarness();

test("tells what happens", async () => {
  const { project, key } = acme;
  const stream = await openStream(url, project, { key });
  await ask(`POST /projects/${project}/test-runs?task_slug=unit&branch=main`, { key, body: junit("pf") });
  const data = await stream.hears("test_run.completed");
  console.log(stream.raw, data);
  await stream.close();
});
