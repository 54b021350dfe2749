// Copy buttons. The clipboard API requires https; otherwise the text is selected and copied with the browser's command.
function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied ? Promise.resolve() : Promise.reject(new Error("not copied"));
}

function offerCopies(root) {
  root.querySelectorAll("[data-copy]").forEach((source) => {
    if (source.dataset.copy === "offered") return;
    source.dataset.copy = "offered";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.className = "copy";
    button.addEventListener("click", async () => {
      const isCopied = await copyText(source.textContent.trim()).then(
        () => true,
        () => false,
      );
      // Without a clipboard, the selection is ready for Ctrl+C.
      if (!isCopied) getSelection().selectAllChildren(source);
      button.textContent = isCopied ? "Copied" : "Press Ctrl+C";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    source.after(button);
  });
}
offerCopies(document);
