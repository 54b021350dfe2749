// What pages have more with JavaScript: keys, copying, relative times, news. All of it works without as well.

const every = (selector, work) => document.querySelectorAll(selector).forEach(work);

// Relative times
const STEPS = [
  [31536000, "year"],
  [2592000, "month"],
  [86400, "day"],
  [3600, "hour"],
  [60, "minute"],
];
function ago(time) {
  const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
  const [size, name] = STEPS.find(([size]) => seconds >= size) ?? [0, ""];
  const value = size ? Math.floor(seconds / size) : 0;
  time.textContent = size ? `${value} ${name}${value === 1 ? "" : "s"} ago` : "just now";
}
if (!document.documentElement.dataset.still) setInterval(() => every("time[data-ago]", ago), 30_000);

// Copying: the button appears where it works
function offerCopies(root) {
  if (!navigator.clipboard) return;
  root.querySelectorAll("[data-copy]").forEach((source) => {
    if (source.dataset.copy === "offered") return;
    source.dataset.copy = "offered";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.className = "copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(source.textContent.trim());
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    source.after(button);
  });
}
offerCopies(document);

// Keys: / searches, j and k walk the rows, Enter follows, Escape leaves
const rows = () =>
  [...document.querySelectorAll("main summary, main td:not(.mark-cell) > a:first-child")].filter(
    (row) => row.offsetParent,
  );
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const search = document.querySelector('[data-key="/"]');
    if (search?.offsetParent) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "j" || event.key === "k") {
    const all = rows();
    const at = all.indexOf(document.activeElement);
    all[event.key === "j" ? Math.min(at + 1, all.length - 1) : Math.max(at - 1, 0)]?.focus();
  }
});

// News: the page is asked for again, and what differs is put in its place
const main = document.querySelector("main[data-live]");
if (main && window.EventSource) {
  // Without a stream, because there are too many or it has failed, the page asks by itself until there is one again.
  const ASK_EVERY_MS = 10_000;
  let waiting;
  let asking;
  let events;
  let isOver = false;
  let stale = false;
  async function renew() {
    waiting = undefined;
    if (document.hidden) return void (stale = true);
    stale = false;
    const response = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => undefined);
    // Nobody is signed in any more.
    if (response?.redirected) return end();
    if (!response?.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const region of main.querySelectorAll("[data-region]")) {
      const next = fresh.querySelector(`[data-region="${CSS.escape(region.dataset.region)}"]`);
      if (!next || next.innerHTML === region.dataset.shown) continue;
      // What is being read or written in stays.
      if (region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"))
        continue;
      const open = [...region.querySelectorAll("details[open][id]")].map(({ id }) => id);
      const focused = document.activeElement?.id;
      region.dataset.shown = next.innerHTML;
      region.replaceChildren(...next.childNodes);
      for (const id of open) region.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
      if (focused) document.getElementById(focused)?.focus();
      offerCopies(region);
      for (const log of region.querySelectorAll("[data-tail]")) log.scrollTop = log.scrollHeight;
    }
    document.title = fresh.title;
    if (!fresh.querySelector("main[data-live]")) end();
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
      // Otherwise the browser itself comes back.
      if (events.readyState !== EventSource.CLOSED || isOver) return;
      clearTimeout(asking);
      asking = setTimeout(() => {
        news();
        listen();
      }, ASK_EVERY_MS);
    });
  }
  listen();
  document.addEventListener("visibilitychange", () => stale && !document.hidden && news());
}
