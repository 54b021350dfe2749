// Logs: follow mode until the reader scrolls up, links of lines, next and previous error
let followsLog = !location.hash;
const AT_END_PX = 4;
// The end of the box is where its scrolling begins (tasks.css).
const isAtEnd = (log) => log.scrollTop > -AT_END_PX;

function showFollowing() {
  const button = document.querySelector("[data-follow]");
  if (!button) return;
  button.hidden = !document.querySelector("main[data-live] [data-tail]");
  button.setAttribute("aria-pressed", String(followsLog));
}

// Saves the scroll position of a log, and returns a function that restores it in the log that replaces it.
function holdLog(log) {
  const topOf = (element, box) => element.getBoundingClientRect().top - box.getBoundingClientRect().top;
  const line = [...log.querySelectorAll("li")].find((one) => topOf(one, log) + one.offsetHeight > 0);
  const fromStart = log.scrollHeight + log.scrollTop;
  const at = line && topOf(line, log);
  return (next) => {
    const same = line && next.querySelector(`#${line.id}`);
    next.scrollTop = same ? next.scrollTop + topOf(same, next) - at : fromStart - next.scrollHeight;
  };
}

// Called before a region is replaced. The returned function is called afterwards.
function holdLogs(region) {
  const holds = [...region.querySelectorAll("[data-tail]")].map((log) => (followsLog ? undefined : holdLog(log)));
  return () => {
    markLine();
    region.querySelectorAll("[data-tail]").forEach((log, index) => {
      if (followsLog) log.scrollTop = 0;
      else holds[index]?.(log);
    });
    showFollowing();
  };
}

// The browser loses the target of the address when the line is replaced.
function markLine() {
  for (const line of document.querySelectorAll(".numbered > .current")) line.classList.remove("current");
  if (/^#L\d+$/.test(location.hash)) document.querySelector(`.numbered > ${location.hash}`)?.classList.add("current");
}

function goToError(step) {
  const errors = [...document.querySelectorAll(".numbered > .err")];
  const numberOf = (line) => Number(line.id.slice(1));
  const at = Number(/^#L(\d+)$/.exec(location.hash)?.[1] ?? (step > 0 ? 0 : Infinity));
  const next =
    step > 0
      ? (errors.find((line) => numberOf(line) > at) ?? errors[0])
      : (errors.findLast((line) => numberOf(line) < at) ?? errors.at(-1));
  if (!next) return;
  followsLog = false;
  showFollowing();
  location.hash = next.id;
}

addEventListener("hashchange", markLine);
document.addEventListener(
  "scroll",
  ({ target }) => {
    if (!target.matches?.("[data-tail]")) return;
    followsLog = isAtEnd(target);
    showFollowing();
  },
  true,
);
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-next-error]")) {
    event.preventDefault();
    return goToError(1);
  }
  if (event.target.closest("[data-follow]")) {
    followsLog = !followsLog;
    if (followsLog) for (const log of document.querySelectorAll("[data-tail]")) log.scrollTop = 0;
    return showFollowing();
  }
  // The number of a line is in its padding.
  const line = event.target.closest(".numbered > li");
  if (!line || event.clientX - line.getBoundingClientRect().left > parseFloat(getComputedStyle(line).paddingLeft))
    return;
  const log = line.closest("[data-tail]");
  const [x, y, top] = [scrollX, scrollY, log.scrollTop];
  location.hash = line.id;
  log.scrollTop = top;
  scrollTo(x, y);
});
markLine();
showFollowing();
if (!location.hash) document.querySelector(".numbered mark")?.scrollIntoView({ block: "center" });
