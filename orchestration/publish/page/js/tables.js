// Tables, and the table behind every chart.

// columns: { head, cell(row), number?, wide? }; what is wide is left out on a phone. The first column names its row.
// foot: the contents of a last row, one per column.
function table(caption, columns, rows, foot) {
  const kind = (column) => [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null;
  const cells = (row) =>
    columns.map((column, place) => {
      const content = column.cell(row);
      return place === 0 ? el("th", { scope: "row", class: kind(column) }, content) : el("td", { class: kind(column) }, content);
    });
  return el(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col", class: kind(column) }, column.head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, cells(row)))),
      foot && el("tfoot", {}, el("tr", {}, foot.map((content, place) => (place === 0 ? el("th", { scope: "row" }, content) : el("td", { class: kind(columns[place]) }, content))))),
    ),
  );
}

function behind(caption, build) {
  const host = el("div", {});
  const details = el("details", { class: "behind" }, el("summary", {}, "Show as a table", unseen(": " + caption)), host);
  // Built when it is opened: a year of days is long.
  details.addEventListener("toggle", () => {
    if (details.open && !host.firstChild) host.append(build());
  });
  return details;
}

function money(amount, attributes) {
  return el("span", { class: "money", ...attributes }, cents(amount));
}

// A bar in a cell: the number beside it says the same.
function bar(share, tone) {
  const filled = el("span", { class: "bar-fill " + (tone || "") });
  filled.style.width = Math.max(0, Math.min(1, share || 0)) * 100 + "%";
  return el("span", { class: "bar", "aria-hidden": "true" }, filled);
}

function legend(items) {
  return el(
    "ul",
    { class: "legend" },
    items.map(([tone, text]) => el("li", {}, el("span", { class: "swatch " + tone, "aria-hidden": "true" }), text)),
  );
}

// One choice of a few. Radio buttons, so that arrow keys and screen readers know what it is.
function choice(label, name, options, chosen, choose) {
  return el(
    "fieldset",
    { class: "choice" },
    el("legend", { class: "unseen" }, label),
    options.map(([value, text]) =>
      el(
        "label",
        {},
        el("input", { type: "radio", name, value, checked: value === chosen, onchange: () => choose(value) }),
        el("span", {}, text),
      ),
    ),
  );
}

function lead(...children) {
  return el("p", { class: "lead" }, ...children);
}
