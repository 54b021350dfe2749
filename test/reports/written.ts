/** A report of each format whose tool is not at hand, written after its documentation: one test, which failed. */

export const WRITTEN: Record<string, string> = {
  "ctrf.json":
    '{"results":{"tool":{"name":"jest"},"summary":{"tests":1,"passed":0,"failed":1,"pending":0,"skipped":0,"other":0,"start":1700000000000,"stop":1700000001000},"tests":[{"name":"adds","status":"failed","duration":3,"suite":"Cart","message":"expected 1","trace":"at a.ts:1:1","rawStatus":"failed","filePath":"a.test.ts"}],"environment":{"branchName":"main","commit":"abc"}}}',
  "dart.ndjson": [
    '{"protocolVersion":"0.1.1","runnerVersion":"1.24.9","pid":1,"type":"start","time":0}',
    '{"suite":{"id":0,"platform":"vm","path":"test/a_test.dart"},"type":"suite","time":0}',
    '{"group":{"id":2,"suiteID":0,"parentID":null,"name":"","testCount":1},"type":"group","time":1}',
    '{"test":{"id":3,"name":"adds","suiteID":0,"groupIDs":[2],"line":1,"column":1,"url":"file:///w/test/a_test.dart"},"type":"testStart","time":2}',
    '{"testID":3,"messageType":"print","message":"hello","type":"print","time":2}',
    '{"testID":3,"error":"Expected: <2>\\n  Actual: <1>","stackTrace":"test/a_test.dart 3:5 main","isFailure":true,"type":"error","time":3}',
    '{"testID":3,"result":"failure","skipped":false,"hidden":false,"type":"testDone","time":4}',
    '{"success":false,"type":"done","time":5}',
  ].join("\n"),
  "k6.json":
    '{"root_group":{"name":"","path":"","id":"r","groups":[],"checks":[{"name":"home","path":"::home","id":"h","passes":1,"fails":1}]},"metrics":{"checks":{"type":"rate","contains":"default","values":{"rate":0.5,"passes":1,"fails":1}}},"state":{"testRunDurationMs":1234.5}}',
  "native.json":
    '{"taskSlug":"unit","passed":0,"failed":1,"skipped":0,"cases":[{"name":"adds","suite":"Cart","file":"a.ts","status":"failed","durationMs":3,"message":"no","stack":"at a","output":"o"}]}',
  "nunit.xml":
    '<test-run id="2" testcasecount="1" result="Failed" total="1" failed="1"><test-suite type="TestFixture" name="Cart" fullname="Acme.Cart"><test-case id="1" name="Adds" fullname="Acme.Cart.Adds" classname="Acme.Cart" result="Failed" duration="0.1"><properties><property name="Category" value="slow"/></properties><failure><message>expected 1</message><stack-trace>at Acme.Cart.Adds() in /w/Cart.cs:line 1</stack-trace></failure><output>text</output></test-case></test-suite></test-run>',
  "robot.xml":
    '<robot generator="Robot 7.0 (Python 3.12 on linux)" generated="2026-01-31T00:00:00" rpa="false"><suite id="s1" name="Cart" source="/w/cart.robot"><test id="s1-t1" name="Adds" line="3"><kw name="Should Be Equal"><msg time="2026-01-31T00:00:00" level="FAIL">1 != 2</msg><status status="FAIL" start="2026-01-31T00:00:00" elapsed="0.1">1 != 2</status></kw><tag>slow</tag><status status="FAIL" start="2026-01-31T00:00:00" elapsed="0.1">1 != 2</status></test><status status="FAIL" start="2026-01-31T00:00:00" elapsed="0.1">Suite teardown failed:\nno</status></suite><statistics/><errors><msg level="ERROR">no</msg></errors></robot>',
  "trx.xml":
    '<TestRun id="1" name="run" xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010"><Times start="2026-01-31T00:00:00Z" finish="2026-01-31T00:00:01Z"/><Results><UnitTestResult executionId="e" testId="t" testName="Acme.Cart.Adds" duration="00:00:00.1" outcome="Failed"><Output><StdOut>hello</StdOut><ErrorInfo><Message>expected 1</Message><StackTrace>at Acme.Cart.Adds() in /w/Cart.cs:line 1</StackTrace></ErrorInfo></Output></UnitTestResult></Results><TestDefinitions><UnitTest name="Acme.Cart.Adds" storage="/w/a.dll" id="t"><Execution id="e"/><TestMethod codeBase="/w/a.dll" className="Acme.Cart" name="Adds"/></UnitTest></TestDefinitions><ResultSummary outcome="Failed"><Counters total="1" executed="1" passed="0" failed="1"/><RunInfos><RunInfo outcome="Error"><Text>the run ended</Text></RunInfo></RunInfos></ResultSummary></TestRun>',
  "xunit.xml":
    '<assemblies timestamp="01/31/2026 00:00:00"><assembly name="/w/a.dll" total="1" passed="0" failed="1" skipped="0" errors="0" time="0.1"><errors/><collection name="c" total="1"><test name="Acme.Cart.Adds" type="Acme.Cart" method="Adds" time="0.1" result="Fail" source-file="/w/Cart.cs" source-line="3"><traits><trait name="Category" value="slow"/></traits><failure exception-type="Xunit.Sdk.EqualException"><message>expected 1</message><stack-trace>at Acme.Cart.Adds() in /w/Cart.cs:line 1</stack-trace></failure><output>text</output></test></collection></assembly></assemblies>',
};
