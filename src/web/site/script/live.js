// Live updates: fetches the page again, and replaces the regions that differ
const main = document.querySelector("main[data-live]");
if (main && window.EventSource) {
  // Without a stream, because there are too many or it failed, the page polls until a stream is available again.
  const ASK_EVERY_MS = 10_000;
  let waiting;
  let asking;
  let events;
  let isOver = false;
  let stale = false;
  // While the main button or the space bar is pressed, nothing is replaced: the click would be lost with the element under it.
  let isPressed = false;
  // Each answer has another CSRF token, which is no change of the region.
  const contentOf = (region) => region.innerHTML.replaceAll(/ name="csrf" value="[^"]*"/g, "");
  const shown = new WeakMap();
  for (const region of main.querySelectorAll("[data-region]")) shown.set(region, contentOf(region));
  async function renew() {
    waiting = undefined;
    if (document.hidden) return void (stale = true);
    stale = false;
    const response = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => undefined);
    // The session has ended.
    if (response?.redirected) return end();
    if (!response?.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (isPressed) return void (stale = true);
    for (const region of main.querySelectorAll("[data-region]")) {
      const next = fresh.querySelector(`[data-region="${CSS.escape(region.dataset.region)}"]`);
      if (!next || contentOf(next) === shown.get(region)) continue;
      // Regions that the reader is using are not replaced.
      if (region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"))
        continue;
      const open = [...region.querySelectorAll("details[open][id]")].map(({ id }) => id);
      const focused = document.activeElement?.id;
      const showSameLines = holdLogs(region);
      shown.set(region, contentOf(next));
      region.replaceChildren(...next.childNodes);
      for (const id of open) region.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
      if (focused) document.getElementById(focused)?.focus();
      offerCopies(region);
      showSameLines();
    }
    document.title = fresh.title;
    if (!fresh.querySelector("main[data-live]")) {
      document.querySelector("[data-follow]")?.remove();
      end();
    }
  }
  const news = () => (waiting ??= setTimeout(renew, 400));
  function end() {
    isOver = true;
    clearTimeout(asking);
    events.close();
  }
  function listen() {
    events = new EventSource(main.dataset.live);
    for (const type of ["message", "news"]) events.addEventListener(type, news);
    events.addEventListener("error", () => {
      // Otherwise the browser reconnects by itself.
      if (events.readyState !== EventSource.CLOSED || isOver) return;
      clearTimeout(asking);
      asking = setTimeout(() => {
        news();
        listen();
      }, ASK_EVERY_MS);
    });
  }
  listen();
  const renewIfStale = () => stale && !document.hidden && !isPressed && news();
  document.addEventListener("visibilitychange", renewIfStale);
  const hold = ({ type, key, button }) => (isPressed ||= type === "keydown" ? key === " " : button === 0);
  const release = () => {
    isPressed = false;
    renewIfStale();
  };
  for (const type of ["pointerdown", "keydown"]) addEventListener(type, hold, true);
  for (const type of ["pointerup", "pointercancel", "keyup", "blur"]) addEventListener(type, release);
}
