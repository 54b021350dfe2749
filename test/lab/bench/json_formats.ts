/** Reports in JSON, documents and lines, of many test cases of which one in twenty failed. */

export const CASES = 100_000;
const trace = "com.acme.SoldOut: no more\n\tat com.acme.Cart.add(Cart.java:12)\n\tat com.acme.Shop.run(Shop.java:99)";
const python = [">   assert cart.total == 7", "E   AssertionError: assert 6 == 7", "test_cart.py:12: AssertionError"];
const failsAt = (n: number): boolean => n % 20 === 0;

/** The beginning, one test case, and the end of a document. */
export const JSON_DOCUMENTS: Record<string, [begin: string, test: (n: number) => object, end: string]> = {
  mochawesome: [
    '{"stats":{"testsRegistered":1},"results":[{"title":"","suites":[{"title":"cart","fullFile":"/home/dev/cart.spec.js","tests":[',
    (n) => ({
      ...{ title: `adds ${n}`, fullTitle: `cart adds ${n}`, timedOut: false, duration: 3, pass: !failsAt(n) },
      ...{ fail: failsAt(n), state: failsAt(n) ? "failed" : "passed", speed: "fast", pending: false, context: null },
      ...{ code: "", isHook: false, skipped: false, uuid: `e9e016fd-df19-4a11-aa4b-${n}` },
      err: failsAt(n) ? { message: "AssertionError: 6 == 7", estack: trace, diff: null } : {},
    }),
    "]}]}]}",
  ],
  pytest_json: [
    '{"created":1700000000,"duration":9.5,"exitcode":1,"root":"/home/dev","summary":{},"tests":[',
    (n) => ({
      ...{
        nodeid: `tests/test_cart.py::TestCart::test_adds[${n}]`,
        lineno: 9,
        outcome: failsAt(n) ? "failed" : "passed",
      },
      keywords: [`test_adds[${n}]`, "parametrize", "test_cart.py"],
      ...{ setup: { duration: 0.0001, outcome: "passed" }, teardown: { duration: 0.0001, outcome: "passed" } },
      call: failsAt(n)
        ? { duration: 0.1, outcome: "failed", crash: { message: "AssertionError" }, longrepr: python.join("\n") }
        : { duration: 0.1, outcome: "passed" },
    }),
    "]}",
  ],
  newman: [
    '{"collection":{"info":{"name":"Shop"},"item":[]},"run":{"stats":{},"failures":[],"executions":[',
    (n) => ({
      ...{
        cursor: { ref: `c${n}`, position: n, iteration: 0 },
        item: { id: `${n}`, name: `request ${n}` },
        id: `${n}`,
      },
      response: { status: "OK", code: 200, responseTime: 3, header: [{ key: "date", value: "now" }] },
      assertions: [
        {
          assertion: "is 200",
          skipped: false,
          ...(failsAt(n) ? { error: { name: "AssertionError", stack: trace } } : {}),
        },
      ],
    }),
    "]}}",
  ],
  behave: [
    '[{"keyword":"Feature","name":"F","tags":[],"location":"a.feature:1","status":"failed","elements":[',
    (n) => ({
      ...{ type: "scenario", keyword: "Scenario", name: `adds ${n}`, tags: ["slow"], location: `a.feature:${n + 2}` },
      steps: ["given", "when", "then"].map((step_type) => ({
        ...{ keyword: step_type, step_type, name: "a cart", location: "a.feature:3" },
        match: { location: "features/steps/cart.py:2", arguments: [] },
        result:
          failsAt(n) && step_type === "then"
            ? { status: "failed", duration: 0.1, error_message: python }
            : { status: "passed", duration: 0.1 },
      })),
      status: failsAt(n) ? "failed" : "passed",
    }),
    "]}]",
  ],
  xcresult: [
    '{"testNodes":[{"nodeType":"Unit test bundle","name":"ShopTests","children":[',
    (n) => ({
      ...{
        nodeType: "Test Case",
        name: `testAdds${n}()`,
        nodeIdentifier: `CartTests/testAdds${n}()`,
        duration: "0,25s",
      },
      ...{ durationInSeconds: 0.25, result: failsAt(n) ? "Failed" : "Passed" },
      nodeIdentifierURL: `test://com.apple.xcode/Shop/ShopTests/CartTests/testAdds${n}()`,
      ...(failsAt(n) ? { children: [{ nodeType: "Failure Message", name: "CartTests.swift:42: 6 is not 7" }] } : {}),
    }),
    "]}]}",
  ],
};

const time = { seconds: 0, nanos: 9 };
const swift = (kind: string, n: number, more: object = {}) => ({
  ...{ kind: "event", version: 0 },
  payload: {
    ...{
      kind,
      instant: { absolute: 9, since1970: 1_700_000_000 + n },
      messages: [{ symbol: "pass", text: "Test passed." }],
    },
    ...{ testID: `ShopTests.CartTests/adds${n}()/CartTests.swift:6:3`, ...more },
  },
});

/** The lines at the beginning, those of one test case, and those at the end. */
export const JSON_LINES: Record<string, [begin: object, test: (n: number) => object[], end: object]> = {
  cucumber_messages: [
    { meta: { protocolVersion: "32.0.0" } },
    (n) => [
      {
        pickle: {
          ...{ id: `p${n}`, uri: "a.feature", name: `adds ${n}`, language: "en", astNodeIds: [`n${n}`], tags: [] },
          steps: [{ id: `s${n}`, text: "a cart", type: "Action", astNodeIds: [] }],
        },
      },
      { testCase: { id: `c${n}`, pickleId: `p${n}`, testSteps: [{ id: `t${n}`, pickleStepId: `s${n}` }] } },
      { testCaseStarted: { id: `a${n}`, testCaseId: `c${n}`, attempt: 0, timestamp: time } },
      { testStepStarted: { testCaseStartedId: `a${n}`, testStepId: `t${n}`, timestamp: time } },
      {
        testStepFinished: {
          ...{ testCaseStartedId: `a${n}`, testStepId: `t${n}`, timestamp: time },
          testStepResult: {
            duration: time,
            ...(failsAt(n) ? { status: "FAILED", message: trace } : { status: "PASSED" }),
          },
        },
      },
      { testCaseFinished: { testCaseStartedId: `a${n}`, timestamp: time, willBeRetried: false } },
    ],
    { testRunFinished: { success: false, timestamp: time } },
  ],
  libtest: [
    { type: "suite", event: "started", test_count: CASES },
    (n) => [
      { type: "test", event: "started", name: `cart::tests::adds_${n}` },
      {
        ...{ type: "test", name: `cart::tests::adds_${n}`, event: failsAt(n) ? "failed" : "ok", exec_time: 0.001 },
        ...(failsAt(n) ? { stdout: `thread 'a' panicked at src/a.rs:1:1:\n${trace}` } : {}),
      },
    ],
    { type: "suite", event: "failed", passed: CASES * 0.95, failed: CASES / 20, ignored: 0, measured: 0 },
  ],
  pytest_reportlog: [
    { pytest_version: "9.0.3", $report_type: "SessionStart" },
    (n) =>
      ["setup", "call", "teardown"].map((when) => ({
        ...{ nodeid: `tests/test_cart.py::test_adds[${n}]`, location: ["tests/test_cart.py", 9, `test_adds[${n}]`] },
        ...{ keywords: { test_adds: 1, "test_cart.py": 1 }, when, user_properties: [], sections: [], duration: 0.001 },
        ...{ start: 1_700_000_000.5, stop: 1_700_000_000.6, $report_type: "TestReport" },
        ...(failsAt(n) && when === "call"
          ? { outcome: "failed", longrepr: { reprcrash: { message: "assert 6 == 7" } } }
          : { outcome: "passed", longrepr: null }),
      })),
    { exitstatus: 1, $report_type: "SessionFinish" },
  ],
  swift_testing: [
    { kind: "event", version: 0, payload: { kind: "runStarted", messages: [] } },
    (n) => [
      {
        ...{ kind: "test", version: 0 },
        payload: {
          ...{ id: `ShopTests.CartTests/adds${n}()/CartTests.swift:6:3`, kind: "function", name: `adds${n}()` },
          sourceLocation: {
            _filePath: "/home/dev/Tests/CartTests.swift",
            fileID: "ShopTests/CartTests.swift",
            line: 6,
          },
        },
      },
      swift("testStarted", n),
      ...(failsAt(n) ? [swift("issueRecorded", n, { issue: { isKnown: false } })] : []),
      swift("testEnded", n),
    ],
    { kind: "event", version: 0, payload: { kind: "runEnded", messages: [] } },
  ],
};
