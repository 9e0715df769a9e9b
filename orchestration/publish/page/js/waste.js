// How busy the GPUs were that jobs held, and what the rest of their time cost.

function drawWaste() {
  const held = HOURS.filter((row) => row.month === STATE.month);
  const all = held.find((row) => row.team === null);
  const kinds = now(KINDS);
  const sum = kinds.find((row) => row.team === null);
  const parts = [
    lead(
      "A GPU that a job holds and does not use is paid by the job: waste. It is known where telemetry is. ",
      all && all.sampled
        ? [el("strong", {}, percent(all.busy / all.sampled, 1)), " of the held GPU time with telemetry was busy; waste of ", el("strong", { class: "money", "data-figure": "waste-total" }, STATE.currency + " " + cents(sum ? sum.waste : 0)), "."]
        : "There is no telemetry in this month.",
    ),
  ];
  if (!IS_TEAM) parts.push(busyTable(held, kinds));
  else parts.push(...heldWeek());
  parts.push(worstJobs());
  byId("waste").replaceChildren(...parts);
}

function busyTable(held, kinds) {
  const rows = held
    .filter((row) => row.team !== null)
    .map((row) => ({ ...row, share: row.sampled ? row.busy / row.sampled : null, waste: (kinds.find((kind) => kind.team === row.team) || {}).waste }))
    .sort((a, b) => (b.waste || 0) - (a.waste || 0));
  return table(
    "Busy share and waste by team",
    [
      { head: "Team", cell: (row) => teamButton(row.team) },
      { head: "GPU-hours held", number: true, cell: (row) => hours(row.held), wide: true },
      { head: "Telemetry", number: true, cell: (row) => percent(row.held ? row.sampled / row.held : null), wide: true },
      { head: unseen("Bar"), cell: (row) => bar(row.share, "cool"), wide: true },
      { head: "Busy", number: true, cell: (row) => percent(row.share) },
      { head: "Waste, " + STATE.currency, number: true, cell: (row) => money(row.waste ?? null, { "data-figure": "waste", "data-team": DATA.teams[row.team][0] }) },
    ],
    rows,
  );
}

function heldWeek() {
  const find = (weeks) => (weeks.find(([month]) => month === STATE.month) || [null, new Array(168).fill(0)])[1];
  const held = find(DATA.held.hours);
  const idle = find(DATA.held.idle);
  if (!held.some((value) => value > 0)) return [];
  const shares = idle.map((value, place) => (held[place] ? value / held[place] : null));
  return [
    el("h3", {}, "When your GPUs were held and not busy"),
    week("Share of your held GPU-hours that were not busy, by weekday and hour (UTC)", shares, (share, place) => percent(share, 1) + " not busy (" + hours(idle[place]) + " of " + hours(held[place]) + " GPU-hours)", (share) => percent(share)),
  ];
}

function worstJobs() {
  const rows = now(JOBS).filter((job) => job.worst !== null).sort((a, b) => a.worst - b.worst);
  if (!rows.length) return el("p", { class: "note" }, "No job of this month has a waste that is known in " + STATE.currency + ".");
  return el(
    "div",
    {},
    el("h3", {}, "Jobs with the most waste"),
    table(
      "Jobs with the most waste in " + STATE.currency,
      [
        { head: "Job", cell: (job) => [jobButton(job), el("span", { class: "aside" }, [!IS_TEAM && teamName(job.team), job.user].filter(Boolean).join(" · "))] },
        { head: "GPU-hours", number: true, cell: (job) => hours(job.gpuHours), wide: true },
        { head: "Busy", number: true, cell: (job) => percent(job.busy), wide: true },
        { head: "Cost", number: true, cell: (job) => money(job.total), wide: true },
        { head: "Waste", number: true, cell: (job) => money(job.held_idle) },
      ],
      rows,
    ),
  );
}
