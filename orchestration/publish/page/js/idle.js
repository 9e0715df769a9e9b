// Idle by cause: in money, and when in the week.

let idleCause = "all";
let idleMeasure = "cost";

function drawIdle() {
  if (IS_TEAM) drawTeamIdle();
  else drawCompanyIdle();
}

function drawCompanyIdle() {
  const found = now(records(DATA.idle.totals));
  const totals = found.filter((row) => row.cause !== null && row.cost);
  const all = found.find((row) => row.cause === null) || { cost: 0, exact: "0", poolCost: 0 };
  const largest = Math.max(...totals.map((row) => row.cost), 1e-9);
  const pick = (name, change) => (value) => {
    change(value);
    drawIdle();
    document.querySelector(`input[name=${name}]:checked`).focus();
  };
  const causes = [["all", "All"], ...CAUSES.map((cause) => [cause, CAUSE_NAMES[cause][0]])];
  byId("idle").replaceChildren(
    lead("Of what hourly pools cost in " + monthName(STATE.month) + ", ", el("strong", {}, percent(all.cost / (all.poolCost || 1), 1)), " paid for capacity that no job had. What a job had and did not use is its own cost; see Busy and waste."),
    el(
      "div",
      { class: "split" },
      table(
        "Idle by cause in " + STATE.currency,
        [
          { head: "Cause", cell: (row) => [CAUSE_NAMES[row.cause][0], el("span", { class: "aside" }, CAUSE_NAMES[row.cause][1])] },
          { head: unseen("Bar"), cell: (row) => bar(row.cost / largest, "warm"), wide: true },
          { head: "Cost", number: true, cell: (row) => money(row.cost, { "data-figure": "idle", "data-cause": row.cause, "data-exact": row.exact }) },
        ],
        [...totals].sort((a, b) => b.cost - a.cost),
        totals.length ? ["All causes", "", money(all.cost, { "data-figure": "idle-total", "data-exact": all.exact })] : null,
      ),
      el(
        "div",
        {},
        el("div", { class: "row" },
          choice("Cause", "cause", causes, idleCause, pick("cause", (value) => (idleCause = value))),
          choice("Measure", "measure", [["cost", STATE.currency], ["hours", "GPU share"]], idleMeasure, pick("measure", (value) => (idleMeasure = value)))),
        idleWeek(),
      ),
    ),
  );
}

function addedWeeks(weeks) {
  const sum = new Array(168).fill(0);
  for (const values of weeks) values.forEach((value, place) => (sum[place] += value));
  return sum;
}

function idleWeek() {
  const chosen = (cause) => idleCause === "all" || cause === idleCause;
  const loaded = weekdaysLoaded();
  const what = idleCause === "all" ? "all causes" : CAUSE_NAMES[idleCause][0].toLowerCase();
  if (idleMeasure === "cost") {
    const sums = addedWeeks(DATA.idle.cost.filter(([month, currency, cause]) => month === STATE.month && currency === STATE.currency && chosen(cause)).map((row) => row[3]));
    // A month has four or five of each weekday, or none yet: means can be compared.
    const values = sums.map((sum, place) => (loaded[Math.floor(place / 24)] ? sum / loaded[Math.floor(place / 24)] : null));
    return week(
      "Idle cost by weekday and hour (UTC), mean of the month, " + what,
      values,
      (value, place) => STATE.currency + " " + cents(value) + " idle in this hour on average\n" + cents(sums[place]) + " in the month",
      (value) => (value === 0 ? "0" : STATE.currency + " " + compact(value)),
    );
  }
  const capacity = addedWeeks(DATA.idle.capacity.filter(([month]) => month === STATE.month).map((row) => row[1]));
  const idle = addedWeeks(DATA.idle.hours.filter(([month, cause]) => month === STATE.month && chosen(cause)).map((row) => row[2]));
  const shares = idle.map((value, place) => (capacity[place] ? value / capacity[place] : null));
  return week("Idle share of GPU-hours by weekday and hour (UTC), " + what, shares, (share, place) => percent(share, 1) + " of GPUs idle (" + hours(idle[place]) + " of " + hours(capacity[place]) + " h)", (share) => percent(share));
}

function drawTeamIdle() {
  const row = KINDS.find((one) => one.month === STATE.month && one.currency === STATE.currency && one.team === null);
  const rows = row ? CAUSES.map((cause) => ({ cause, cost: row["idle_" + cause] })).filter((one) => one.cost) : [];
  const largest = Math.max(...rows.map((one) => Math.abs(one.cost)), 1e-9);
  byId("idle").replaceChildren(
    lead("Your part of the capacity that no job had, by cause: ", el("strong", {}, STATE.currency + " " + cents(row ? row.idle : 0)), row && row.total ? ", " + percent(row.idle / row.total, 1) + " of your cost." : "."),
    rows.length
      ? table(
          "Your part of idle by cause in " + STATE.currency,
          [
            { head: "Cause", cell: (one) => [CAUSE_NAMES[one.cause][0], el("span", { class: "aside" }, CAUSE_NAMES[one.cause][1])] },
            { head: unseen("Bar"), cell: (one) => bar(Math.abs(one.cost) / largest, "warm"), wide: true },
            { head: "Cost", number: true, cell: (one) => money(one.cost, { "data-figure": "idle", "data-cause": one.cause }) },
          ],
          rows.sort((a, b) => b.cost - a.cost),
        )
      : el("p", { class: "note" }, "None in this month."),
  );
}
