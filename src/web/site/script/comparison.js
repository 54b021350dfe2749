// Comparisons of pictures: the slider says how much of the actual picture is seen beside the expected one.
document.addEventListener("input", ({ target }) => {
  const figure = target.matches?.(".divider > input") && target.closest(".comparison");
  if (figure) figure.style.setProperty("--split", `${target.value}%`);
});
