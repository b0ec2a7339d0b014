"use strict";
(() => {
  const all = [...document.querySelectorAll("article")];
  const toolbar = document.querySelector(".toolbar");
  if (!toolbar) return;
  const filter = document.getElementById("filter");
  const boxes = [...toolbar.querySelectorAll("input[type=checkbox]")];
  const nothing = document.getElementById("nothing");
  const texts = all.map((article) => article.textContent.toLowerCase());
  const update = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kinds = new Set(boxes.filter((box) => box.checked).map((box) => box.name));
    let shown = 0;
    all.forEach((article, n) => {
      const wanted = kinds.has(article.className) && words.every((word) => texts[n].includes(word));
      article.hidden = !wanted;
      shown += wanted;
    });
    nothing.hidden = shown > 0;
  };
  const move = (by) => {
    const shown = all.filter((article) => !article.hidden);
    if (shown.length === 0) return;
    const at = shown.indexOf(document.activeElement.closest("article"));
    const next = at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1);
    shown[next].focus();
    shown[next].scrollIntoView();
  };
  filter.addEventListener("input", update);
  boxes.forEach((box) => box.addEventListener("change", update));
  toolbar.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = event.target === filter;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing) { filter.value = ""; update(); filter.blur(); }
    if (typing) return;
    if (event.key === "/") { event.preventDefault(); filter.focus(); }
    if (event.key === "j") move(1);
    if (event.key === "k") move(-1);
  });
  // A link to a finding that the filter hides shows it.
  const target = () => {
    const of = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (of && of.matches("article")) { of.hidden = false; of.focus(); }
  };
  window.addEventListener("hashchange", target);
  update();
  target();
})();
