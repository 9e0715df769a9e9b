// One tip for all charts. Whatever has data-tip shows it under the pointer or the finger.

let shownAt = 0;

function showTip(lines, x, y) {
  const tip = byId("tip");
  shownAt = scrollY;
  tip.replaceChildren(...lines.map((line, place) => el("span", { class: place ? "tip-line" : "tip-title" }, line)));
  tip.hidden = false;
  const left = Math.min(Math.max(8, x - tip.offsetWidth / 2), document.documentElement.clientWidth - tip.offsetWidth - 8);
  const above = y - tip.offsetHeight - 12;
  tip.style.left = left + "px";
  tip.style.top = (above < 8 ? y + 18 : above) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
}

addEventListener("pointermove", (event) => {
  const target = event.target.closest ? event.target.closest("[data-tip]") : null;
  if (target) showTip(target.getAttribute("data-tip").split("\n"), event.clientX, event.clientY);
  else if (event.pointerType === "mouse") hideTip();
});
addEventListener("pointerdown", (event) => {
  const target = event.target.closest ? event.target.closest("[data-tip]") : null;
  if (target) showTip(target.getAttribute("data-tip").split("\n"), event.clientX, event.clientY);
  else hideTip();
});
// Focus scrolls what it goes to into view, and is told of it a frame later: that is no reason to take a new tip away.
addEventListener("scroll", () => { if (scrollY !== shownAt) hideTip(); }, { passive: true });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});
