// The month's total in each currency, against the month before, and what it may come to.

function drawMonth() {
  const cards = CURRENCIES.map((currency) => MONTH_ROWS.find((row) => row.month === STATE.month && row.currency === currency)).filter(Boolean);
  const reporting = REPORTING.filter((row) => row.month === STATE.month);
  byId("month").replaceChildren(
    ...[
      el("div", { class: "totals" }, cards.map(totalCard)),
      forecastNote(cards),
      cards.length > 1 && reporting.length ? reportingLine(reporting) : null,
      kindList(),
      el("details", { class: "behind" }, el("summary", {}, "All months"), monthTable()),
    ].filter(Boolean),
  );
}

function totalCard(row) {
  const complete = row.days === row.daysInMonth;
  const of = { "data-currency": row.currency, "data-month": row.month };
  const closed = CLOSES.some((close) => close.month === row.month);
  return el(
    "article",
    { class: "total", "aria-label": monthName(row.month) + " in " + row.currency },
    el(
      "p",
      { class: "total-head" },
      el("span", {}, monthName(row.month)),
      el("span", { class: "badge" + (complete ? " good" : "") }, closed ? "closed" : complete ? "all days loaded" : row.days + " of " + row.daysInMonth + " days"),
    ),
    el(
      "p",
      { class: "figure" },
      el("span", { class: "code" }, row.currency),
      el("span", { class: "big", "data-figure": "month-total", "data-exact": row.exact, ...of }, cents(row.total)),
    ),
    spark(row),
    el(
      "dl",
      { class: "facts" },
      row.sameDays !== null &&
        fact(
          complete && row.sameDays === row.previous ? "Change from last month" : "Change from the same days of last month",
          el("span", { "data-figure": "month-change", ...of }, changeText(row)),
        ),
      row.previous !== null && fact("Last month, whole", el("span", { "data-figure": "previous-total", ...of }, cents(row.previous))),
      row.forecast !== null &&
        fact("Forecast to month end (estimate)", el("span", {}, "≈ ", el("span", { "data-figure": "forecast", "data-exact": row.forecast, ...of }, whole(row.forecast)))),
      fact("Not final yet", row.open === null ? "nothing: the bills are final" : cents(row.open)),
    ),
  );
}

function forecastNote(cards) {
  const open = cards.find((row) => row.forecast !== null);
  if (!open) return null;
  const missing = open.daysInMonth - open.days;
  return el(
    "p",
    { class: "note" },
    "The forecast is an estimate: what the loaded days cost, and for " + (missing === 1 ? "the other day" : "each of the other " + missing + " days") + " the mean of its weekday over the last four weeks of loaded days. It knows of no plans, prices or holidays.",
  );
}

function fact(term, ...value) {
  return el("div", {}, el("dt", {}, term), el("dd", {}, ...value));
}

function changeText(row) {
  const rising = !row.change.startsWith("-");
  const share = row.percent === null ? "" : " (" + (rising ? "+" : MINUS) + Math.abs(row.percent).toFixed(1) + " %)";
  return [el("span", { "aria-hidden": "true" }, rising ? "▲ " : "▼ "), signed(row.change) + share];
}

// The days of the month as small bars: a shape, not a chart; the one over time has its numbers.
function spark(row) {
  const width = 240;
  const height = 34;
  const days = DATA.days.map((day, place) => [day, place]).filter(([day]) => day.startsWith(row.month));
  const values = days.map(([, place]) => DATA.daily.reduce((sum, [, currency, costs]) => sum + (currency === row.currency ? costs[place] : 0), 0));
  const highest = Math.max(...values, 1e-9);
  const slot = width / row.daysInMonth;
  return svg(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    Array.from({ length: row.daysInMonth }, (_, place) => svg("rect", { class: "spark-ground", x: place * slot, y: height - 1, width: slot * 0.7, height: 1 })),
    values.map((value, place) => {
      const tall = Math.max(1, (Math.max(0, value) / highest) * height);
      return svg("rect", { class: "spark-bar", x: (Number(days[place][0].slice(8)) - 1) * slot, y: height - tall, width: slot * 0.7, height: tall });
    }),
  );
}

function reportingLine(rows) {
  return el(
    "p",
    { class: "lead" },
    "All of it in the reporting currency, at the rates of the ledger: ",
    rows.map((row) => el("strong", { "data-figure": "reporting-total", "data-month": row.month, "data-currency": row.currency }, row.currency + " " + cents(row.total))),
    ".",
  );
}

function kindList() {
  const row = KINDS.find((one) => one.month === STATE.month && one.currency === STATE.currency && one.team === null);
  if (!row) return lead("No cost in " + STATE.currency + " in this month.");
  const kinds = Object.keys(KIND_NAMES).filter((kind) => row[kind]);
  const largest = Math.max(...kinds.map((kind) => Math.abs(row[kind])), 1e-9);
  return el(
    "div",
    { class: "kinds" },
    el("h3", {}, "What it was for, in " + STATE.currency),
    table(
      "Cost by kind in " + monthName(STATE.month) + ", " + STATE.currency,
      [
        { head: "Kind", cell: (kind) => [KIND_NAMES[kind.id][0], el("span", { class: "aside" }, KIND_NAMES[kind.id][1])] },
        { head: unseen("Bar"), cell: (kind) => bar(Math.abs(kind.cost) / largest, kind.cost < 0 ? "negative" : ""), wide: true },
        { head: "Share", number: true, cell: (kind) => percent(kind.cost / row.total, 1), wide: true },
        { head: "Cost", number: true, cell: (kind) => money(kind.cost, { "data-figure": "kind", "data-kind": kind.id }) },
      ],
      kinds.map((kind) => ({ id: kind, cost: row[kind] })),
    ),
  );
}

function monthTable() {
  return table(
    "Totals of all months",
    [
      { head: "Month", cell: (row) => monthName(row.month) },
      { head: "Currency", cell: (row) => row.currency },
      { head: "Days", number: true, cell: (row) => row.days + " of " + row.daysInMonth },
      { head: "Total", number: true, cell: (row) => cents(row.total) },
      { head: "Exact", number: true, cell: (row) => exact(row.exact), wide: true },
      { head: "Forecast", number: true, cell: (row) => (row.forecast === null ? "" : "≈ " + whole(row.forecast)) },
    ],
    MONTH_ROWS,
  );
}
