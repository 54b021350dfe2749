/** The notice above a page after a form: `?notice=saved` in the address names one of the page's texts. */

import * as v from "valibot";
import type { Html } from "../../http/html.ts";

type Notices = Readonly<Record<string, string>>;

/** The query parameter that names one of the notices of a page. */
export const noticeParameter = <const Texts extends Notices>(notices: Texts) =>
  v.optional(v.picklist(Object.keys(notices) as (keyof Texts & string)[], "expected a known notice"));

type NoticeProperties = { notices: Notices; name: string | undefined; isError?: boolean };

/** Shows the named notice, or nothing without a name. */
export const Notice = ({ notices, name, isError = false }: NoticeProperties): Html | null =>
  name === undefined ? null : (
    <p class={`message ${isError ? "bad" : "good"}`} role={isError ? "alert" : "status"}>
      {notices[name]}
    </p>
  );
