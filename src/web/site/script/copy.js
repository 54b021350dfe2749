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
