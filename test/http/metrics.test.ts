import { expect, test } from "bun:test";
import {
  chooseExposition,
  createCounter,
  createHistogram,
  createLoopLag,
  createRequestMetrics,
  gauge,
  processFamilies,
  writeExposition,
} from "../../src/http/metrics.ts";

test("counters, gauges and histograms are written as Prometheus reads them", () => {
  const counter = createCounter({ name: "a_total", help: `Back\\slash and\nbreak` });
  counter.at({ x: `"q" \\ \n` }).value += 2;
  counter.at({ x: `"q" \\ \n` }).value++;
  const histogram = createHistogram({ name: "b_seconds", help: "B" }, [0.5, 1]);
  const observe = histogram.at({ r: "/x" });
  for (const value of [0.25, 0.5, 0.75, 4]) observe(value);
  const families = [
    counter.family,
    histogram.family,
    gauge({ name: "c", help: "C" }, () => Infinity),
    gauge({ name: "d", help: "D" }, () => [[{ k: "v" }, 1.5]]),
    gauge({ name: "nothing", help: "N" }, () => undefined),
  ];
  expect(writeExposition(families)).toBe(
    `# HELP a_total Back\\\\slash and\\nbreak
# TYPE a_total counter
a_total{x="\\"q\\" \\\\ \\n"} 3
# HELP b_seconds B
# TYPE b_seconds histogram
b_seconds_bucket{r="/x",le="0.5"} 2
b_seconds_bucket{r="/x",le="1"} 3
b_seconds_bucket{r="/x",le="+Inf"} 4
b_seconds_sum{r="/x"} 5.5
b_seconds_count{r="/x"} 4
# HELP c C
# TYPE c gauge
c +Inf
# HELP d D
# TYPE d gauge
d{k="v"} 1.5
`,
  );
  expect(() => createCounter({ name: "1a", help: "" })).toThrow("not a valid name");
});

test("OpenMetrics names the family of a counter without its end, escapes quotes in help, and says where it ends", () => {
  const counter = createCounter({ name: "a_total", help: `"A"` });
  counter.at({ x: "y" }).value++;
  const histogram = createHistogram({ name: "b_seconds", help: "B" }, [0.5]);
  histogram.at({})(1);
  expect(writeExposition([counter.family, histogram.family], "openMetrics")).toBe(
    `# HELP a \\"A\\"
# TYPE a counter
a_total{x="y"} 1
# HELP b_seconds B
# TYPE b_seconds histogram
b_seconds_bucket{le="0.5"} 0
b_seconds_bucket{le="+Inf"} 1
b_seconds_sum 1
b_seconds_count 1
# EOF
`,
  );
});

test.each([
  [null, "prometheus"],
  ["*/*", "prometheus"],
  ["application/openmetrics-text", "openMetrics"],
  // What Prometheus sends.
  [
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "openMetrics",
  ],
  ["text/plain;version=0.0.4;q=0.6, application/openmetrics-text;version=1.0.0;q=0.5", "prometheus"],
  ["application/openmetrics-text; version=0.0.1", "prometheus"],
  ["application/openmetrics-text;q=0", "prometheus"],
  ["application/openmetrics-text;q=x", "prometheus"],
] as const)("Accept: %s gets the format of %s", (accept, format) => {
  expect(chooseExposition(accept)).toBe(format);
});

test("requests are counted by route, method and status, and methods that clients make up are one", () => {
  const requests = createRequestMetrics("x");
  requests.record("/a/:id", "GET", 200, 0.001);
  requests.record("/a/:id", "GET", 200, 0.2);
  requests.record("/a/:id", "GET", 404, 100);
  for (let index = 0; index < 100; index++) requests.record("unknown", `M${index}`, 404, 0);
  const text = writeExposition(requests.families);
  expect(text.split("\n").filter((line) => /^x_http_requests_total|_bucket.*"\/a\/:id"/.test(line))).toEqual([
    `x_http_requests_total{route="/a/:id",method="GET",status="200"} 2`,
    `x_http_requests_total{route="/a/:id",method="GET",status="404"} 1`,
    `x_http_requests_total{route="unknown",method="other",status="404"} 100`,
    ...["0.005", "0.025", "0.1", "0.5", "2.5", "10", "60", "+Inf"].map(
      (le, index) =>
        `x_http_request_duration_seconds_bucket{route="/a/:id",method="GET",le="${le}"} ${[1, 1, 1, 2, 2, 2, 2, 3][index]}`,
    ),
  ]);
});

test("the event loop's lag is how late its timer is, and the process tells its memory", () => {
  let now = 0;
  const lag = createLoopLag(() => now);
  expect(lag.seconds()).toBe(0);
  now = 2_500;
  expect(lag.seconds()).toBe(2);
  lag.stop();
  const text = writeExposition(processFamilies());
  const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  expect(value("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
  expect(value("process_start_time_seconds") + value("process_uptime_seconds")).toBeCloseTo(Date.now() / 1_000, -1);
  expect(value("process_cpu_seconds_total")).toBeGreaterThan(0);
});
