// Progressive enhancements: keys, copying, relative times, live updates. All pages work without JavaScript.

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
