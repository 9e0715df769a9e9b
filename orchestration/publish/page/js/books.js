// Whether everything ties: invoices of the providers, closed months, corrections.

function drawBooks() {
  byId("books").replaceChildren(...[!IS_TEAM && reconciliation(), closedMonths(), corrections()].filter(Boolean));
}

function reconciliation() {
  const rows = records(DATA.reconciliation);
  const wrong = rows.filter((row) => !row.ties);
  return el(
    "div",
    {},
    lead(
      rows.length === 0
        ? "No invoice covers these months."
        : wrong.length === 0
          ? [badge(true, "All " + rows.length + " invoices tie"), " Billed = allocatable + paid ahead − released + outside the loaded days, and what is allocatable is allocated. Differences are exactly 0."]
          : [badge(false, wrong.length + " of " + rows.length + " invoices do not tie"), " The differences are in the table; ", el("code", {}, "apportion status"), " says what to do."],
    ),
    table(
      "Reconciliation of each provider's invoice",
      [
        { head: "Invoice", cell: (row) => [row.invoice || "without a number", el("span", { class: "aside" }, row.provider + " · " + (row.period ? monthName(row.period) : "no period"))] },
        { head: "Ties", cell: (row) => badge(row.ties, row.ties ? "ties" : "off by " + exact(row.difference)) },
        { head: "Billed", number: true, cell: (row) => [el("span", { class: "code" }, row.currency), " ", money(row.billed, { "data-figure": "billed", "data-invoice": row.invoice, "data-exact": row.billed })] },
        { head: "Allocatable", number: true, cell: (row) => cents(row.allocatable) },
        { head: "Paid ahead", number: true, cell: (row) => cents(row.paidAhead) },
        { head: "Released", number: true, cell: (row) => cents(row.released) },
        { head: "Other days", number: true, cell: (row) => cents(row.outside) },
        { head: "Difference", number: true, cell: (row) => exact(row.difference) },
        { head: "Status", cell: (row) => [row.status, el("span", { class: "aside" }, deliveries(row))] },
      ],
      rows,
    ),
  );
}

function deliveries(row) {
  const times = row.deliveries === 1 ? "delivered once, on " : "delivered " + row.deliveries + " times, last on ";
  return (row.delivered ? times + longDay(row.delivered) : "") + (row.previous !== null ? ", before " + cents(row.previous) : "");
}

function badge(good, text) {
  return el("span", { class: "badge " + (good ? "good" : "bad") }, el("span", { "aria-hidden": "true" }, good ? "✓ " : "✗ "), text);
}

function closedMonths() {
  if (!CLOSES.length) return IS_TEAM || !TRUE_UPS.length ? el("p", { class: "note" }, "No month is closed yet.") : null;
  return el(
    "div",
    {},
    el("h3", {}, "Closed months"),
    table(
      "Closed months",
      [
        { head: "Month", cell: (row) => [monthName(row.month), el("span", { class: "aside" }, "close " + row.close + " · " + row.at)] },
        { head: "Invoiced", number: true, cell: (row) => [el("span", { class: "code" }, row.currency), " ", money(row.amount, { "data-figure": "closed", "data-month": row.month, "data-currency": row.currency })] },
        { head: "Of it true-ups", number: true, cell: (row) => cents(row.trueUps) },
        { head: "Invoices", number: true, cell: (row) => String(row.invoices), wide: true },
        { head: "Closed by", cell: (row) => [row.by || "", row.override && el("span", { class: "aside" }, "override: " + row.override)] },
        { head: "Hash", cell: (row) => el("code", {}, row.hash || ""), wide: true },
      ],
      CLOSES,
    ),
  );
}

function corrections() {
  if (!TRUE_UPS.length) return null;
  const part = (open, heading, text) => {
    const rows = TRUE_UPS.filter((row) => row.open === open);
    if (!rows.length) return null;
    return el(
      "div",
      {},
      el("h3", {}, heading),
      lead(text),
      table(
        heading,
        [
          { head: IS_TEAM ? "Corrects" : "Team", cell: (row) => (IS_TEAM ? monthName(row.corrects) : [row.team === null ? "no team" : teamName(row.team), el("span", { class: "aside" }, "corrects " + monthName(row.corrects))]) },
          { head: "In", cell: (row) => monthName(row.month) },
          { head: "Amount", number: true, cell: (row) => [el("span", { class: "code" }, row.currency), " ", el("span", { class: "money", "data-figure": open ? "open-true-up" : "true-up", "data-exact": row.exact }, signed(row.amount))] },
          { head: "Cause", cell: (row) => row.cause || "" },
        ],
        rows,
      ),
    );
  };
  return el(
    "div",
    {},
    part(true, "Open true-ups", "What would be added at the next close, because closed months would come out differently today."),
    part(false, "True-ups of closed months", "A closed month never changes; what turned out differently was added in a later one."),
  );
}
