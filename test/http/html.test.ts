/** Markup that escapes what is put into it. */

import { expect, test } from "bun:test";
import { html, raw, safeUrl } from "../../src/http/html.ts";

const hostile = `<script>alert("1")</script>&'`;

test("what is put in is text, wherever it stands", () => {
  expect(html`<a title="${hostile}">${hostile}</a>`.text).toBe(
    `<a title="&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#x27;">&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#x27;</a>`,
  );
});

test("markup and lists of it are taken as they are, and what is not there is nothing", () => {
  const items = ["a", "<b>"].map((name) => html`<li>${name}</li>`);
  const list = html`<ul>${items}${null}${false}${undefined}${0}${raw("<hr>")}</ul>`;
  expect(list.text).toBe("<ul><li>a</li><li>&lt;b&gt;</li>0<hr></ul>");
});

test("what would turn or hide the text beside it is shown", () => {
  expect(html`${"a\u202eb\u0007c\nd"}`.text).toBe("a\\u202eb\\u0007c\nd");
  expect(html`${"\ud800"}`.text).toBe("\ufffd");
});

test("only web addresses are links", () => {
  for (const url of ["javascript:alert(1)", " https://a.example", "//a.example", "data:text/html,x", "", null])
    expect(safeUrl(url)).toBeUndefined();
  expect(safeUrl("https://ci.example/1?a=b")).toBe("https://ci.example/1?a=b");
});

test("the indentation of a template is left out, and the white space of texts and of preformatted markup is kept", () => {
  const text = "a  \n\n   b";
  expect(
    html`<div>
      <p title="${text}">
        ${text}
      </p>
      <pre>
  ${text}
    </pre
      >
      <b>c</b>
    </div>`.text,
  ).toBe(`<div>\n<p title="${text}">\n${text}\n</p>\n<pre>\n  ${text}\n    </pre\n>\n<b>c</b>\n</div>`);
});
