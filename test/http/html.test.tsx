/** HTML that escapes whatever is put into it, and the elements that TSX makes of it. */

import { expect, test } from "bun:test";
import { raw, safeUrl } from "../../src/http/html.ts";

const hostile = `<script>alert("1")</script>&'`;

test("text is escaped in elements and in attributes", () => {
  expect((<a title={hostile}>{hostile}</a>).text).toBe(
    `<a title="&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#x27;">&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#x27;</a>`,
  );
});

test("markup and lists of it are taken as they are, and what is not there is nothing", () => {
  const items = ["a", "<b>"].map((name) => <li>{name}</li>);
  const list = (
    <ul>
      {items}
      {null}
      {false}
      {undefined}
      {0}
      {raw("<hr>")}
    </ul>
  );
  expect(list.text).toBe("<ul><li>a</li><li>&lt;b&gt;</li>0<hr></ul>");
});

test("an attribute that is absent, false or an empty class is left out, and an empty value is kept", () => {
  expect((<input name="a" value="" required={false} class="" checked title={undefined} />).text).toBe(
    `<input name="a" value="" checked>`,
  );
  expect((<td class="x" colspan={2} data-ago />).text).toBe(`<td class="x" colspan="2" data-ago></td>`);
});

test("an empty element of SVG is closed, so that the next one is not inside it", () => {
  const lines = (
    <svg>
      <line x1="0" />
      <path d="M0 0" />
    </svg>
  );
  expect(lines.text).toBe(`<svg><line x1="0"/><path d="M0 0"/></svg>`);
});

test("a component is a function of its properties", () => {
  const Row = ({ name, children }: { name: string; children: string }) => (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
  expect((<Row name="<a>">b</Row>).text).toBe("<dt>&lt;a&gt;</dt><dd>b</dd>");
});

test("control characters that would turn or hide the text beside them are shown", () => {
  expect((<>{"a\u202eb\u0007c\nd"}</>).text).toBe("a\\u202eb\\u0007c\nd");
  expect((<>{"\ud800"}</>).text).toBe("\ufffd");
});

test("only web addresses are links", () => {
  for (const url of ["javascript:alert(1)", " https://a.example", "//a.example", "data:text/html,x", "", null])
    expect(safeUrl(url)).toBeUndefined();
  expect(safeUrl("https://ci.example/1?a=b")).toBe("https://ci.example/1?a=b");
  // @ts-expect-error The type of an address has no other schemes.
  expect((<a href="javascript:alert(1)" />).text).toBeString();
});

test("white space of text is kept, and the indentation of the source is not", () => {
  expect(
    (
      <pre>
        {"  a  \n\n   b"} <b>c</b>
      </pre>
    ).text,
  ).toBe("<pre>  a  \n\n   b <b>c</b></pre>");
});
