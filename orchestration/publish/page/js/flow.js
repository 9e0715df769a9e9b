// From bill to component to pool to team; on a team's page from component to pool to project.

function drawFlow() {
  const pools = now(records(DATA.flow.pools));
  const receivers = now(records(DATA.flow.receivers));
  const columns = [
    { head: "Component", name: componentName },
    { head: "Pool", name: poolName },
    IS_TEAM ? { head: "Project", name: projectName, tone: (place) => (place === null ? "tone-other" : teamTone(place)) } : { head: "Team", name: teamName, tone: teamTone },
  ];
  const steps = [pools, receivers];
  if (!IS_TEAM) {
    columns.unshift({ head: "Bill", name: (provider) => provider });
    steps.unshift(now(records(DATA.bills)));
  }
  const host = byId("flow");
  if (!steps[0].some((link) => link.cost > 0)) {
    host.replaceChildren(lead("No cost in " + STATE.currency + " in this month."));
    return;
  }
  const negative = steps.map((step) => total(step.filter((link) => link.cost < 0)));
  const credited = Math.min(...negative);
  const chart = el("div", { class: "chart-host" });
  const scroll = el("div", { class: "scroll flow", role: "region", tabindex: "0", "aria-label": "Flow of money, chart" }, chart);
  host.replaceChildren(
    lead(
      (IS_TEAM ? "Your cost of " : "The allocatable cost of ") + monthName(STATE.month) + " in " + STATE.currency + ": " + (IS_TEAM ? "what was bought, where it ran, and for which project." : "who billed it, what was bought, where it ran, and who pays."),
      credited < -0.005 ? " Negative amounts of up to " + cents(credited) + " in a column cannot be drawn; the table has them." : "",
    ),
    el("p", { class: "note phone" }, "The chart is wider than this screen: move it sideways."),
    scroll,
    behind("flow of money", () => el("div", {}, steps.map((step, place) => flowTable(columns[place], columns[place + 1], step)))),
  );
  drawn(chart, (width) => sankey(columns, steps, width));
}

function flowTable(from, to, step) {
  const rows = [...step].sort((a, b) => b.cost - a.cost);
  return el(
    "div",
    {},
    el("h3", {}, from.head + " to " + to.head.toLowerCase()),
    table(
      from.head + " to " + to.head.toLowerCase(),
      [
        { head: from.head, cell: (link) => from.name(link.from) },
        { head: to.head, cell: (link) => to.name(link.to) },
        { head: "Cost", number: true, cell: (link) => cents(link.cost) },
      ],
      rows,
    ),
  );
}
