import { describe, expect, test } from "bun:test";
import { isErrorLine } from "../../src/rules/log_errors.ts";

describe("a line of a log reports an error", () => {
  test.each([
    "error: cannot find module 'x'",
    "Error: expected 1 to be 2",
    "    TypeError: undefined is not a function",
    "java.lang.IllegalStateException: closed",
    "ERROR in ./src/index.ts",
    "src/a.ts(3,5): error TS2322: Type 'a' is not assignable",
    "FAIL src/a.test.ts",
    "FAILED tests/test_a.py::test_b - assert 1 == 2",
    "--- FAIL: TestA (0.00s)",
    " 3 failed | 20 passed",
    "Tests: 10 failed, 0 passed",
    "2 failed, 0 errors",
    "fatal: not a git repository",
    "panic: runtime error: index out of range",
    "thread 'main' panicked at src/main.rs:4:5",
    'Exception in thread "main"',
    "Traceback (most recent call last):",
    "npm ERR! code ELIFECYCLE",
    "BUILD FAILED in 3s",
    "[ERROR] Failed to execute goal",
    "Segmentation fault (core dumped)",
    "Found 1 error.",
    "  ✘  25 [chromium] › voucher.spec.ts:31 › applies two vouchers",
    "   × adds two numbers 3ms",
    "    not ok 3 - adds two numbers",
    "(fail) adds two numbers",
  ])("%s", (line) => {
    expect(isErrorLine(line)).toBe(true);
  });

  test.each([
    "",
    "ok",
    "0 failed",
    "12 passed, 0 failed, 0 errors",
    "Found no errors.",
    "no error",
    "Failures: 0, Errors: 0, Skipped: 1",
    "failed=0",
    "# fail 0",
    "errors (0)",
    "without any errors",
    "$ bun test --fail-fast",
    "created error.log",
    "src/error/handler.ts compiled",
    "src/errors.ts",
    "PASS src/error_page.test.ts",
    "my-error-package@1.0.0",
    "1024 × 768",
    "ok 4 - not ok",
    "terror and failover",
    `${"a".repeat(2_000)} error`,
  ])("and %p does not", (line) => {
    expect(isErrorLine(line)).toBe(false);
  });
});
