/** Reports of at least two tests, which all passed, by their formats: a part of one is not green. */

export const GREEN_REPORTS: Record<string, string> = {
  testng: `<testng-results passed="2" failed="0"><suite name="s"><test><class name="a.B"><test-method name="a" status="PASS"/><test-method name="b" status="PASS"/><test-method name="c" status="SKIP"/></class></test></suite></testng-results>`,
  ctest: `<Site Name="h"><Testing><TestList><Test>./a</Test><Test>./b</Test></TestList><Test Status="passed"><Name>a</Name><FullName>./a</FullName></Test><Test Status="passed"><Name>b</Name><FullName>./b</FullName></Test></Testing></Site>`,
  boost: `<TestLog><TestSuite name="m"><TestCase name="a"><TestingTime>1</TestingTime></TestCase><TestCase name="b"><TestingTime>1</TestingTime></TestCase></TestSuite></TestLog>`,
  boost_report: `<TestResult><TestSuite name="m" result="passed" test_cases_passed="2" test_cases_failed="0" test_cases_skipped="0"><TestCase name="a" result="passed"></TestCase><TestCase name="b" result="passed"></TestCase></TestSuite></TestResult>`,
  catch2: `<Catch2TestRun name="m"><TestCase name="a"><OverallResult success="true"/></TestCase><TestCase name="b"><OverallResult success="true"/></TestCase><OverallResultsCases successes="2" failures="0" expectedFailures="0"/></Catch2TestRun>`,
  sonar: `<testExecutions version="1"><file path="a"><testCase name="a" duration="1"/></file><file path="b"><testCase name="b" duration="1"/></file></testExecutions>`,
  go: "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/c\n--- PASS: TestB (0.00s)\n    --- PASS: TestB/c (0.00s)\n=== RUN   TestD\n--- SKIP: TestD (0.00s)\nPASS\nok  \texample.com/a\t0.010s\n",
  tap: "TAP version 13\nok 1 - a\nok 2 - b\n# Subtest: c\n    ok 1 - d\n    1..1\nok 3 - c\n1..3\n",
  teamcity:
    "##teamcity[testCount count='2']\n##teamcity[testSuiteStarted name='A']\n##teamcity[testStarted name='a']\n##teamcity[testFinished name='a']\n##teamcity[testSuiteFinished name='A']\n##teamcity[testSuiteStarted name='B']\n##teamcity[testStarted name='b']\n##teamcity[testFinished name='b']\n##teamcity[testSuiteFinished name='B']\n",
  dart: [
    '{"protocolVersion":"0.1.1","runnerVersion":"1.24.9","pid":1,"type":"start","time":0}',
    '{"suite":{"id":0,"platform":"vm","path":"test/a_test.dart"},"type":"suite","time":0}',
    ...[3, 4].flatMap((id) => [
      `{"test":{"id":${id},"name":"t${id}","suiteID":0,"groupIDs":[]},"type":"testStart","time":2}`,
      `{"testID":${id},"result":"success","skipped":false,"hidden":false,"type":"testDone","time":4}`,
    ]),
    '{"success":true,"type":"done","time":5}',
  ].join("\n"),
  go_json: [
    '{"Action":"start","Package":"p"}',
    ...["TestA", "TestB"].flatMap((name) => [
      `{"Action":"run","Package":"p","Test":"${name}"}`,
      `{"Action":"pass","Package":"p","Test":"${name}","Elapsed":0}`,
    ]),
    '{"Action":"pass","Package":"p","Elapsed":0.1}',
  ].join("\n"),
  junit:
    '<testsuites tests="2"><testsuite name="s" tests="1"><testcase name="a"/></testsuite><testsuite name="t" tests="1"><testcase name="b"/></testsuite></testsuites>',
  robot:
    '<robot generator="Robot 7.1"><suite name="A"><test name="a"><status status="PASS"/></test><test name="b"><status status="PASS"/></test><status status="PASS"/></suite><statistics/><errors/></robot>',
  doctest:
    '<doctest binary="a"><TestSuite><TestCase name="a"><OverallResultsAsserts successes="1" failures="0" test_case_success="true"/></TestCase><TestCase name="b"><OverallResultsAsserts successes="1" failures="0" test_case_success="true"/></TestCase></TestSuite><OverallResultsAsserts successes="2" failures="0"/><OverallResultsTestCases successes="2" failures="0"/></doctest>',
  nunit:
    '<test-run result="Passed" total="2" failed="0"><test-suite type="TestFixture" name="C" result="Passed"><test-case name="a" result="Passed"/><test-case name="b" result="Passed"/></test-suite></test-run>',
  nunit_2:
    '<test-results total="2" failures="0" errors="0" not-run="0"><test-suite name="C" success="True"><results><test-case name="a" executed="True" success="True"/><test-case name="b" executed="True" success="True"/></results></test-suite></test-results>',
  trx: '<TestRun><Results><UnitTestResult testName="a" outcome="Passed"/><UnitTestResult testName="b" outcome="Passed"/></Results><ResultSummary outcome="Completed"><Counters total="2" passed="2" failed="0"/></ResultSummary></TestRun>',
  xunit:
    '<assemblies><assembly name="a.dll" total="2" failed="0"><collection name="c"><test name="a" result="Pass"/><test name="b" result="Pass"/></collection></assembly></assemblies>',
  cucumber_messages: [
    '{"meta":{"protocolVersion":"32.0.0","implementation":{"name":"cucumber-js","version":"12.0.0"}}}',
    '{"pickle":{"id":"p1","uri":"a.feature","name":"a","astNodeIds":[],"steps":[{"id":"s1","text":"x"}],"tags":[]}}',
    '{"pickle":{"id":"p2","uri":"a.feature","name":"b","astNodeIds":[],"steps":[{"id":"s2","text":"x"}],"tags":[]}}',
    '{"testRunStarted":{"timestamp":{"seconds":1700000000,"nanos":0}}}',
    ...["1", "2"].flatMap((n) => [
      `{"testCase":{"id":"c${n}","pickleId":"p${n}","testSteps":[{"id":"t${n}","pickleStepId":"s${n}"}]}}`,
      `{"testCaseStarted":{"id":"a${n}","testCaseId":"c${n}","attempt":0}}`,
      `{"testStepFinished":{"testCaseStartedId":"a${n}","testStepId":"t${n}","testStepResult":{"status":"PASSED","duration":{"seconds":0,"nanos":9}}}}`,
      `{"testCaseFinished":{"testCaseStartedId":"a${n}","willBeRetried":false}}`,
    ]),
    '{"testRunFinished":{"success":true,"timestamp":{"seconds":1700000001,"nanos":0}}}',
  ].join("\n"),
  libtest: [
    '{ "type": "suite", "event": "started", "test_count": 2 }',
    ...["a", "b"].flatMap((name) => [
      `{ "type": "test", "event": "started", "name": "${name}" }`,
      `{ "type": "test", "name": "${name}", "event": "ok" }`,
    ]),
    '{ "type": "suite", "event": "ok", "passed": 2, "failed": 0, "ignored": 0, "measured": 0, "filtered_out": 0, "exec_time": 0.1 }',
  ].join("\n"),
  playwright_blob: [
    '{"method":"onBlobReportMetadata","params":{"version":2}}',
    '{"method":"onProject","params":{"project":{"name":"p","suites":[{"title":"a.ts","location":{"file":"a.ts"},"entries":[{"testId":"a","title":"a"},{"testId":"b","title":"b"}]}]}}}',
    ...["a", "b"].flatMap((id) => [
      `{"method":"onTestBegin","params":{"testId":"${id}","result":{"id":"r${id}"}}}`,
      `{"method":"onTestEnd","params":{"test":{"testId":"${id}","expectedStatus":"passed"},"result":{"id":"r${id}","status":"passed"}}}`,
    ]),
    '{"method":"onEnd","params":{"result":{"status":"passed"}}}',
  ].join("\n"),
  surefire:
    "[INFO] -------------------------------------------------------\n[INFO]  T E S T S\n[INFO] -------------------------------------------------------\n" +
    ["A", "B"]
      .map(
        (name) =>
          `[INFO] Running ${name}\n[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in ${name}\n`,
      )
      .join("") +
    "[INFO] \n[INFO] Results:\n[INFO] \n[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n",
  pytest_reportlog: [
    '{"pytest_version": "9.0.3", "$report_type": "SessionStart"}',
    ...["a", "b"].flatMap((name) =>
      ["setup", "call", "teardown"].map(
        (when) =>
          `{"nodeid": "t.py::${name}", "location": ["t.py", 1, "${name}"], "outcome": "passed", "longrepr": null, "when": "${when}", "sections": [], "duration": 0.1, "$report_type": "TestReport"}`,
      ),
    ),
    '{"exitstatus": 0, "$report_type": "SessionFinish"}',
  ].join("\n"),
  swift_testing: [
    ...["a", "b"].map(
      (name) =>
        `{"kind":"test","payload":{"id":"M.${name}()/F.swift:1:1","kind":"function","name":"${name}()"},"version":0}`,
    ),
    '{"kind":"event","payload":{"kind":"runStarted","messages":[]},"version":0}',
    ...["a", "b"].flatMap((name) => [
      `{"kind":"event","payload":{"kind":"testStarted","messages":[],"testID":"M.${name}()/F.swift:1:1"},"version":0}`,
      `{"kind":"event","payload":{"kind":"testEnded","messages":[{"symbol":"pass","text":"passed"}],"testID":"M.${name}()/F.swift:1:1"},"version":0}`,
    ]),
    '{"kind":"event","payload":{"kind":"runEnded","messages":[{"symbol":"pass","text":"passed"}]},"version":0}',
  ].join("\n"),
  mochawesome: `{"stats":{"tests":2,"passes":2,"pending":0,"failures":0,"testsRegistered":2,"other":0,"skipped":0},"results":[{"title":"","fullFile":"","tests":[{"title":"a","state":"passed","pass":true,"err":{}},{"title":"b","state":"passed","pass":true,"err":{}}],"suites":[]}]}`,
  pytest_json: `{"created":1700000000.5,"duration":0.1,"exitcode":0,"root":"/home/dev","summary":{"passed":2,"total":2},"tests":[{"nodeid":"t.py::a","lineno":1,"outcome":"passed","call":{"duration":0.1,"outcome":"passed"}},{"nodeid":"t.py::b","lineno":2,"outcome":"passed","call":{"duration":0.1,"outcome":"passed"}}]}`,
  newman: `{"collection":{"item":[],"info":{"name":"c"}},"run":{"stats":{"assertions":{"total":2,"pending":0,"failed":0}},"executions":[{"item":{"id":"1","name":"r"},"assertions":[{"assertion":"a","skipped":false},{"assertion":"b","skipped":false}]}],"failures":[]}}`,
  behave: `[\n{"keyword":"Feature","name":"F","tags":[],"location":"a.feature:1","status":"passed","elements":[{"type":"scenario","name":"a","location":"a.feature:2","steps":[{"name":"x","result":{"status":"passed","duration":0.1}}],"status":"passed"}]},\n{"keyword":"Feature","name":"G","tags":[],"location":"b.feature:1","status":"passed","elements":[{"type":"scenario","name":"b","location":"b.feature:2","steps":[{"name":"x","result":{"status":"passed","duration":0.1}}],"status":"passed"}]}\n]\n`,
  xcresult: `{"testNodes":[{"nodeType":"Test Plan","name":"p","result":"Passed","children":[{"nodeType":"Test Case","name":"a()","result":"Passed"},{"nodeType":"Test Case","name":"b()","result":"Passed"}]}]}`,
  ctrf: `{"results":{"tool":{"name":"t"},"summary":{"tests":2,"passed":2,"failed":0},"tests":[{"name":"a","status":"passed"},{"name":"b","status":"passed"}]}}`,
  jest: `{"success":true,"numTotalTests":2,"numFailedTests":0,"testResults":[{"name":"/a.js","status":"passed","assertionResults":[{"title":"a","status":"passed"},{"title":"b","status":"passed"}]}]}`,
  mocha: `{"stats":{"passes":2,"failures":0,"pending":0},"tests":[{"title":"a","fullTitle":"a","err":{}},{"title":"b","fullTitle":"b","err":{}}],"passes":[{"title":"a","fullTitle":"a","err":{}},{"title":"b","fullTitle":"b","err":{}}],"failures":[],"pending":[]}`,
  playwright: `{"config":{},"suites":[{"title":"a.ts","file":"a.ts","specs":[{"title":"a","tests":[{"status":"expected","results":[{"status":"passed"}]}]},{"title":"b","tests":[{"status":"expected","results":[{"status":"passed"}]}]}]}],"stats":{"expected":2,"unexpected":0,"flaky":0,"skipped":0},"errors":[]}`,
  cucumber: `[{"uri":"a.feature","name":"F","elements":[{"type":"scenario","id":"a","name":"a","steps":[{"result":{"status":"passed"}}]},{"type":"scenario","id":"b","name":"b","steps":[{"result":{"status":"passed"}}]}]}]`,
  rspec: `{"examples":[{"description":"a","full_description":"a","status":"passed"},{"description":"b","full_description":"b","status":"passed"}],"summary":{"example_count":2,"failure_count":0},"summary_line":"2 examples"}`,
};
