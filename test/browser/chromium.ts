/** Debian's chromium as people use it: looks at pages, presses what is called so, and hears what the pages complain of. */

import { afterAll } from "bun:test";
import { until } from "../harness.ts";

const CHROMIUM = ["chromium", "chromium-browser", "google-chrome"].map((name) => Bun.which(name)).find(Boolean);

export const hasChromium = CHROMIUM !== undefined;
if (!hasChromium) console.warn("There is no chromium: tests in a browser are skipped (apt-get install chromium)");

export type Scheme = "light" | "dark";
export const SCHEMES: readonly Scheme[] = ["light", "dark"];
/** In pixels: a desk, and a telephone. */
export const WIDTHS = [1280, 375] as const;

const SECONDS = 10;

export type Chromium = Awaited<ReturnType<typeof openChromium>>;

/** One window of it, with no cookies; `url` is where the server is. */
export async function openChromium(url: string, { width = 1280 }: { width?: number } = {}) {
  const view = new Bun.WebView({
    width,
    height: 900,
    backend: { type: "chrome", url: false, path: CHROMIUM!, argv: ["--no-sandbox", "--disable-dev-shm-usage"] },
  });
  await view.navigate("about:blank");
  /** What the pages since the last look had to complain of. */
  const complaints: string[] = [];
  const hear = (type: `${string}.${string}`, tell: (data: any) => string | undefined) =>
    view.addEventListener<any>(type, ({ data }) => {
      const complaint = tell(data);
      if (complaint !== undefined) complaints.push(complaint);
    });
  hear("Runtime.exceptionThrown", ({ exceptionDetails: { text, exception } }) => exception?.description ?? text);
  hear("Runtime.consoleAPICalled", ({ type, args }) =>
    ["error", "warning", "assert"].includes(type)
      ? `${type}: ${args.map(({ value }: any) => value).join(" ")}`
      : undefined,
  );
  // What the browser says of a page: a policy that was violated, an answer that failed.
  hear("Log.entryAdded", ({ entry }) => (entry.level === "error" ? `${entry.source}: ${entry.text}` : undefined));
  hear("Page.javascriptDialogOpening", ({ message }) => {
    view.cdp("Page.handleJavaScriptDialog", { accept: false }).catch(() => {});
    return `dialog: ${message}`;
  });
  for (const domain of ["Runtime", "Log", "Page", "Network"]) await view.cdp(`${domain}.enable`);
  afterAll(() => view.close());

  const hasLeft = (error: unknown) =>
    error instanceof Error && /navigated or closed|context was destroyed|context with specified id/.test(error.message);
  /** What leads to another page may take the page away before it is answered that it was pressed. */
  const input = (method: string, params: Record<string, unknown>) =>
    view.cdp(method, params).catch((error) => (hasLeft(error) ? undefined : Promise.reject(error)));

  /** The value of an expression on the page, in the page's world or, where scripts are off, in spite of it. */
  async function evaluate<T>(expression: string): Promise<T> {
    // A page that goes away under a question is asked again where it has led to.
    const ask = async (times: number): Promise<any> => {
      try {
        return await view.cdp("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
      } catch (error) {
        if (times === 0 || !hasLeft(error)) throw new Error(`${String(error)}: ${expression.slice(0, 200)}`);
        await Bun.sleep(20);
        return await ask(times - 1);
      }
    };
    const { result, exceptionDetails } = await ask(50);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value as T;
  }

  /** Waits until an expression is true on the page, whichever page that is by then. */
  async function becomes(expression: string, seconds = SECONDS): Promise<void> {
    await until(() => evaluate<boolean>(`Boolean(${expression})`).catch(() => false), seconds).catch(async () => {
      const words = await evaluate("document.body.innerText").catch(() => "");
      throw new Error(`Not true after ${seconds} s: ${expression}\n${await evaluate("location.href")}\n${words}`);
    });
  }

  const complete = "document.readyState === 'complete'";

  async function go(path: string): Promise<void> {
    const to = new URL(path, url).href;
    await view.navigate(to).catch((error) => (hasLeft(error) ? view.navigate(to) : Promise.reject(error)));
    await becomes(complete);
  }

  /** Does something that leads to another page, and waits for that. */
  async function leaving(work: () => Promise<unknown>): Promise<void> {
    await evaluate("void (window.isLeft = false)");
    await work();
    await becomes(`window.isLeft === undefined && ${complete}`);
  }

  /** Where to press what reads so, or is called so: the first that is seen, in `within` or anywhere. */
  const find = (text: string, within: string) => `(() => {
    const wanted = ${JSON.stringify(text)};
    const called = (one) => (one.getAttribute("aria-label") ?? one.textContent).replace(/\\s+/g, " ").trim();
    const all = [...document.querySelectorAll(${JSON.stringify(within)} + " :is(button, a, summary, [role=button])")];
    const seen = all.filter((one) => one.checkVisibility());
    return seen.find((one) => called(one) === wanted) ?? seen.find((one) => called(one).includes(wanted));
  })()`;

  /** Presses a button, a link or a summary with the mouse, where it is. `meanwhile` is done before the mouse is released. */
  async function press(text: string, within = "body", meanwhile = async () => {}): Promise<void> {
    const found = find(text, within);
    await becomes(found);
    await evaluate(`${found}.scrollIntoView({ block: "center", behavior: "instant" })`);
    const at = await evaluate<{ x: number; y: number }>(`(() => {
      const { left, top, width, height } = ${found}.getClientRects()[0];
      return { x: left + Math.min(width / 2, 100), y: top + height / 2 };
    })()`);
    const move = (type: string) => input("Input.dispatchMouseEvent", { type, ...at, button: "left", clickCount: 1 });
    await move("mousePressed");
    await meanwhile();
    await move("mouseReleased");
  }

  const labelled = (label: string) => `(() => {
    const words = (one) => [...one.childNodes].filter(({ nodeName }) => !/^(INPUT|SELECT|TEXTAREA)$/.test(nodeName))
      .map(({ textContent }) => textContent).join(" ").replace(/\\s+/g, " ").trim();
    const fields = [...document.querySelectorAll("input:not([type=hidden]), select, textarea")];
    const names = (one) => [one.getAttribute("aria-label"), ...[...(one.labels ?? [])].map(words)];
    return fields.find((one) => names(one).includes(${JSON.stringify(label)}))
      ?? fields.find((one) => names(one).some((name) => name?.startsWith(${JSON.stringify(label)})));
  })()`;

  /** Writes into the field, or chooses in the list, whose label begins so. */
  async function fill(label: string, value: string): Promise<void> {
    const field = labelled(label);
    await becomes(field);
    const isList = await evaluate<boolean>(`${field}.localName === "select"`);
    if (isList)
      return await evaluate(`(() => {
        const list = ${field};
        list.value = [...list.options].find(({ text, value }) => [text.trim(), value].includes(${JSON.stringify(value)})).value;
        list.dispatchEvent(new Event("change", { bubbles: true }));
      })()`);
    await evaluate(`(${field}.focus(), ${field}.select?.())`);
    await view.cdp("Input.insertText", { text: value });
  }

  async function key(name: string, modifiers = 0): Promise<void> {
    const code = { Tab: 9, Enter: 13, Escape: 27 }[name] ?? name.toUpperCase().charCodeAt(0);
    const text = name === "Enter" ? "\r" : name.length === 1 ? name : undefined;
    const stroke = { key: name, windowsVirtualKeyCode: code, modifiers, ...(text ? { text } : {}) };
    await input("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", ...stroke });
    await input("Input.dispatchKeyEvent", { type: "keyUp", ...stroke });
  }

  return {
    view,
    complaints,
    evaluate,
    becomes,
    go,
    press,
    fill,
    key,
    /** Presses what leads to another page. */
    follow: async (text: string, within?: string) => await leaving(() => press(text, within)),
    leaving,
    cdp: view.cdp.bind(view),
    words: async () => (await evaluate<string>("document.body.innerText")).replace(/\s+/g, " ").trim(),
    /** As if this session's cookie had been set by a log-in. */
    signIn: async ({ token }: { token: string }) =>
      void (await view.cdp("Network.setCookie", { url, name: "assay_session", value: token, httpOnly: true })),
    signOut: async () => void (await view.cdp("Network.clearBrowserCookies")),
    /** How wide the window is, light or dark, and whether pages may run scripts. */
    async appear({ width = 1280, height = 900, scheme = "light" as Scheme, script = true, features = [] as object[] }) {
      await view.cdp("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
      await view.cdp("Emulation.setEmulatedMedia", {
        features: [{ name: "prefers-color-scheme", value: scheme }, ...features],
      });
      await view.cdp("Emulation.setScriptExecutionDisabled", { value: !script });
    },
    /** Of the whole page, as a PNG. */
    async picture({ maxHeight = 6_000 }: { maxHeight?: number } = {}): Promise<Buffer> {
      const { cssContentSize } = await view.cdp<any>("Page.getLayoutMetrics");
      const { data } = await view.cdp<{ data: string }>("Page.captureScreenshot", {
        format: "png",
        captureBeyondViewport: true,
        clip: { x: 0, y: 0, width: cssContentSize.width, height: Math.min(cssContentSize.height, maxHeight), scale: 1 },
      });
      return Buffer.from(data, "base64");
    },
  };
}
