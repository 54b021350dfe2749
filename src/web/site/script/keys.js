// Keyboard shortcuts: j and k move through the rows of the main list, o opens one, / searches, g and a letter opens a section, ? lists the keys
const KEYS = [
  ["j / k", "next or previous row"],
  ["o", "open the row"],
  ["/", "search"],
  ["a / r / i", "assign the bug of the row to you, resolve it, ignore it"],
  ["e / E", "next or previous error of a log"],
  ["g e", "executions"],
  ["g t", "tests"],
  ["g b", "bugs"],
  ["?", "keyboard shortcuts"],
];
const SECTIONS = { e: "executions", t: "tests", b: "bugs" };
// The position of the row whose button was pressed by a key, for the page that is loaded then
const FOCUSED_ROW = "assay.focused_row";
const LINK = "td:not(.mark-cell) a, th a";
// One element per row: the failure's heading, or the first link of a table's row
const rows = () =>
  [...document.querySelectorAll("main details.failure > summary, main tbody tr")]
    .map((row) => ({ row, target: row.matches("summary") ? row : row.querySelector(LINK) }))
    .filter(({ target }) => target?.checkVisibility());

function showKeys() {
  let dialog = document.querySelector("dialog.keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.className = "keys";
    dialog.setAttribute("aria-label", "Keyboard shortcuts");
    const list = document.createElement("dl");
    for (const [key, meaning] of KEYS) {
      const [term, text] = [document.createElement("dt"), document.createElement("dd")];
      const code = document.createElement("kbd");
      code.textContent = key;
      term.append(code);
      text.textContent = meaning;
      list.append(term, text);
    }
    dialog.append(list);
    dialog.addEventListener("click", () => dialog.close());
    document.body.append(dialog);
  }
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

let isGoing = false;
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const wasGoing = isGoing;
  isGoing = event.key === "g" && !wasGoing;
  if (wasGoing) {
    const section = SECTIONS[event.key];
    const link = section && document.querySelector(`header nav a[href$="/${section}"]`);
    if (link) link.click();
  } else if (event.key === "/") {
    const search = document.querySelector('[data-key="/"]');
    if (search?.offsetParent) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "?") {
    showKeys();
  } else if (event.key === "e" || event.key === "E") {
    goToError(event.key === "e" ? 1 : -1);
  } else if (event.key === "j" || event.key === "k") {
    const all = rows();
    const index = all.findIndex(({ row }) => row.contains(document.activeElement));
    all[event.key === "j" ? Math.min(index + 1, all.length - 1) : Math.max(index - 1, 0)]?.target.focus();
  } else if (event.key === "o") {
    rows()
      .find(({ row }) => row.contains(document.activeElement))
      ?.target.click();
  } else if (/^[a-z]$/.test(event.key)) {
    const row = document.activeElement.closest("tr");
    const button = row?.querySelector(`[data-row-key="${event.key}"]`);
    if (!button) return;
    sessionStorage.setItem(FOCUSED_ROW, String(rows().findIndex((one) => one.row === row)));
    button.click();
  }
});

// The button of a row loads the page again: the row that is now in its place gets the focus
{
  const index = sessionStorage.getItem(FOCUSED_ROW);
  sessionStorage.removeItem(FOCUSED_ROW);
  const all = rows();
  if (index !== null) all[Math.min(Number(index), all.length - 1)]?.target.focus();
}
