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
