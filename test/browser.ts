/** As much of a browser as forms need: cookies, where a page comes from, hidden fields. */

/** What a page or the answer to a form was. */
export type Shown = { status: number; text: string; location: string | null; headers: Headers };

export type Browser = ReturnType<typeof createBrowser>;

/** Reads the entities that our pages write. */
export const unescape = (text: string): string =>
  text.replace(
    /&(?:amp|lt|gt|quot|#x27|#39);/g,
    (one) => ({ "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"' })[one] ?? "'",
  );

/** The text that a reader sees: without tags, blanks as one. */
export const toWords = (html: string): string =>
  unescape(
    html
      .replace(/<(script|style|title)\b[^]*?<\/\1>/g, "")
      .replace(/<wbr>/g, "")
      .replace(/<[^>]*>/g, " "),
  )
    .replace(/\s+/g, " ")
    .replace(/ ([,.:;?])/g, "$1")
    .trim();

export const wordsOf = ({ text }: Pick<Shown, "text">): string => toWords(text);

/** Redirects are not followed: they are told. */
export function createBrowser(url: string, more: Record<string, string> = {}) {
  const cookies = new Map<string, string>();

  async function send(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Shown> {
    const response = await fetch(new URL(path, url), {
      method,
      redirect: "manual",
      headers: {
        accept: "text/html",
        "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        ...(cookies.size > 0 ? { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") } : {}),
        ...more,
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      if (/Max-Age=0/.test(cookie)) cookies.delete(name!);
      else cookies.set(name!, value!);
    }
    const text = await response.text();
    return { status: response.status, text, location: response.headers.get("location"), headers: response.headers };
  }

  const get = (path: string) => send("GET", path, {});
  const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    send(
      "POST",
      path,
      { "content-type": "application/x-www-form-urlencoded", origin: url, ...headers },
      new URLSearchParams(fields).toString(),
    );

  return {
    cookies,
    get,
    post,
    /** The hidden fields of the form on a page that is sent to `action`. */
    hiddenOf({ text }: Shown, action: string): Record<string, string> {
      const form = [...text.matchAll(/<form[^>]*>[^]*?<\/form>/g)]
        .map(([form]) => form)
        .find((form) => unescape(/ action="([^"]*)"/.exec(form)?.[1] ?? "") === action);
      if (form === undefined) throw new Error(`No form for ${action} on the page: ${wordsOf({ text })}`);
      const hidden = [...form.matchAll(/<input\s+type="hidden"\s+name="([^"]*)"\s+value="([^"]*)"/g)];
      return Object.fromEntries(hidden.map(([, name, value]) => [name!, unescape(value!)]));
    },

    /** Opens a page, and sends one of its forms. */
    async submit(page: string, action: string, fields: Record<string, string> = {}): Promise<Shown> {
      return await post(action, { ...this.hiddenOf(await get(page), action), ...fields });
    },
  };
}
