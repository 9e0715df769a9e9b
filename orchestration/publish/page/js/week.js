// A week of hours as a heat map. It is a table, so it can be read out; arrow keys walk in it.

// values: 168 numbers from Monday 0:00, null where there is nothing to tell; told(value, place) says one in words
function week(caption, values, told, format) {
  const highest = Math.max(...values, 0);
  const none = "no data";
  const cells = [];
  const cell = (day, hour) => {
    const place = day * 24 + hour;
    const value = values[place];
    const words = WEEKDAYS[day] + " " + hourSpan(hour) + "\n" + (value === null ? none : told(value, place));
    const node = el("td", { class: value === null ? "heat none" : "heat", tabindex: place === 0 ? "0" : "-1", "data-tip": words, "data-place": place }, unseen(value === null ? none : format(value)));
    node.style.setProperty("--heat", (highest > 0 ? Math.max(0, value) / highest : 0).toFixed(3));
    cells.push(node);
    return node;
  };
  const body = el(
    "tbody",
    {},
    WEEKDAYS.map((name, day) =>
      el("tr", {}, el("th", { scope: "row" }, el("span", { "aria-hidden": "true" }, name.slice(0, 2)), unseen(name)), Array.from({ length: 24 }, (_, hour) => cell(day, hour))),
    ),
  );
  body.addEventListener("keydown", (event) => {
    const place = Number(event.target.getAttribute("data-place"));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 24, ArrowUp: -24 }[event.key];
    if (!step || Number.isNaN(place) || !cells[place + step]) return;
    event.preventDefault();
    cells[place].tabIndex = -1;
    cells[place + step].tabIndex = 0;
    cells[place + step].focus();
  });
  body.addEventListener("focusin", (event) => {
    if (!event.target.matches(":focus-visible")) return;
    const box = event.target.getBoundingClientRect();
    const words = event.target.getAttribute("data-tip");
    if (words) showTip(words.split("\n"), box.left + box.width / 2, box.top);
  });
  body.addEventListener("focusout", hideTip);
  const head = el(
    "thead",
    {},
    el("tr", {}, el("td", {}), Array.from({ length: 24 }, (_, hour) => el("th", { scope: "col" }, hour % 6 === 0 ? String(hour) : unseen(String(hour))))),
  );
  return el(
    "div",
    { class: "week" },
    el("table", {}, el("caption", { class: "unseen" }, caption), head, body),
    el("p", { class: "scale", "aria-hidden": "true" }, "0", el("span", { class: "ramp" }), format(highest)),
  );
}

// How many days of each weekday the month has so far.
function weekdaysLoaded() {
  const counts = new Array(7).fill(0);
  for (const day of DATA.days) if (day.startsWith(STATE.month)) counts[weekdayOf(day)] += 1;
  return counts;
}
