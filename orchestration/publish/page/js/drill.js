// From team to project to the receipt of a job. Every level is an address of its own.

const RECEIPT_LINES = [
  ["gpu", "GPU"],
  ["cpu", "CPU"],
  ["memory", "Memory"],
  ["energy", "Energy"],
  ["other_direct", "Other direct cost"],
  ["idle", "Its part of idle"],
  ["burst", "Burst"],
  ["outcome_credit", "Credit for lost work"],
  ["adjustment", "Adjustments"],
];

function teamButton(place) {
  return linkButton(teamName(place), { team: place, project: null, job: null }, "team", DATA.teams[place][0]);
}

function jobButton(job) {
  return linkButton(job.name, { team: job.team, project: job.project === null ? -1 : job.project, job: jobId(job) }, "job", jobId(job));
}

// A link with an address of its own, so that it can be opened in another tab, too.
function linkButton(text, change, kind, id) {
  return el(
    "a",
    {
      href: address(change),
      class: "deeper",
      ["data-" + kind]: id,
      onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(change);
      },
    },
    text,
  );
}

// A key that is withheld has no address; the place among the jobs of this file stands in.
function jobId(job) {
  return job.key === null ? "#" + JOBS.indexOf(job) : job.key;
}

function drawDrill(focus) {
  const host = byId("drill");
  const project = STATE.project === -1 ? null : STATE.project;
  const level = STATE.job !== null ? "job" : STATE.project !== null ? "project" : STATE.team !== null ? "team" : "all";
  const job = level === "job" ? now(JOBS).find((one) => jobId(one) === STATE.job && one.team === STATE.team && one.project === project) : null;
  host.replaceChildren(
    ...[
      crumbs(level, project, job),
      level === "all" ? allTeams() : level === "team" ? oneTeam(STATE.team) : level === "project" ? oneProject(STATE.team, project) : oneJob(job),
    ].flat().filter(Boolean),
  );
  if (!focus) return;
  const heading = host.querySelector("h3");
  byId("drill-section").scrollIntoView({ block: "start" });
  heading.focus({ preventScroll: true });
}

function crumbs(level, project, job) {
  const steps = [];
  if (!IS_TEAM) steps.push(["All teams", { team: null, project: null, job: null }]);
  if (STATE.team !== null) steps.push([teamName(STATE.team), { project: null, job: null }]);
  if (STATE.project !== null) steps.push([projectName(project), { job: null }]);
  if (STATE.job !== null) steps.push([job ? job.name : "Job", null]);
  if (steps.length < 2) return null;
  return el(
    "nav",
    { class: "crumbs", "aria-label": "Where you are" },
    el("ol", {}, steps.map(([text, change], place) => el("li", {}, place === steps.length - 1 ? el("span", { "aria-current": "page" }, text) : linkButton(text, change, "crumb", String(place))))),
  );
}

function heading(text, ...beside) {
  return el("div", { class: "row" }, el("h3", { tabindex: "-1" }, text), ...beside);
}

function totalBeside(amount, attributes) {
  return el("p", { class: "beside" }, el("span", { class: "code" }, STATE.currency), " ", money(amount, attributes));
}

function allTeams() {
  const rows = now(KINDS).filter((row) => row.team !== null).sort((a, b) => b.total - a.total);
  const largest = Math.max(...rows.map((row) => row.total), 1e-9);
  return [
    heading("Teams in " + monthName(STATE.month)),
    rows.length === 0
      ? lead("No cost in " + STATE.currency + " in this month.")
      : table(
          "Cost by team in " + STATE.currency,
          [
            { head: "Team", cell: (row) => teamButton(row.team) },
            { head: unseen("Bar"), cell: (row) => bar(row.total / largest), wide: true },
            { head: "Used", number: true, cell: (row) => cents(row.direct), wide: true },
            { head: "Idle", number: true, cell: (row) => cents(row.idle), wide: true },
            { head: "Everything else", number: true, cell: (row) => cents((row.total - row.direct - row.idle)), wide: true },
            { head: "Cost", number: true, cell: (row) => money(row.total, { "data-figure": "team-total", "data-team": DATA.teams[row.team][0], "data-exact": row.exact }) },
          ],
          rows,
        ),
  ];
}

function oneTeam(team) {
  const own = now(KINDS).find((row) => row.team === team);
  const projects = now(BY_PROJECT).filter((row) => row.team === team).sort((a, b) => b.total - a.total);
  const largest = Math.max(...projects.map((row) => row.total), 1e-9);
  return [
    heading(teamName(team) + ", " + monthName(STATE.month), totalBeside(own ? own.total : 0, { "data-figure": "team-total", "data-team": DATA.teams[team][0], "data-exact": own ? own.exact : "0" })),
    projects.length === 0
      ? lead("No cost in " + STATE.currency + " in this month.")
      : table(
          "Projects",
          [
            { head: "Project", cell: (row) => linkButton(projectName(row.project), { project: row.project === null ? -1 : row.project, job: null }, "project", row.project === null ? "" : DATA.projects[row.project][0]) },
            { head: unseen("Bar"), cell: (row) => bar(row.total / largest), wide: true },
            { head: "Jobs", number: true, cell: (row) => grouped(String(row.jobCount)), wide: true },
            { head: "On jobs", number: true, cell: (row) => cents(row.onJobs), wide: true },
            { head: "Not on jobs", number: true, cell: (row) => cents(row.rest), wide: true },
            { head: "Waste", number: true, cell: (row) => cents(row.waste), wide: true },
            { head: "Cost", number: true, cell: (row) => money(row.total, { "data-figure": "project-total", "data-exact": row.exact }) },
          ],
          projects,
        ),
    componentTable(now(BY_COMPONENT).filter((row) => row.team === team)),
    el("p", { class: "note" }, "Every figure of a team, with rates and rules: ", el("code", {}, "apportion explain team " + shellWord(DATA.teams[team][0]) + " --month " + STATE.month)),
  ];
}

function componentTable(rows) {
  const sums = new Map();
  for (const row of rows) sums.set(row.component, (sums.get(row.component) || 0) + row.cost);
  const found = [...sums].map(([component, cost]) => ({ component, cost })).sort((a, b) => b.cost - a.cost);
  const largest = Math.max(...found.map((row) => row.cost), 1e-9);
  if (!found.length) return null;
  return el(
    "div",
    {},
    el("h4", {}, "By component"),
    table(
      "Cost by component",
      [
        { head: "Component", cell: (row) => componentName(row.component) },
        { head: unseen("Bar"), cell: (row) => bar(row.cost / largest, "cool"), wide: true },
        { head: "Cost", number: true, cell: (row) => cents(row.cost) },
      ],
      found,
    ),
  );
}

function oneProject(team, project) {
  const own = now(BY_PROJECT).find((row) => row.team === team && row.project === project);
  if (!own) return [heading(projectName(project)), lead("No cost in " + STATE.currency + " in this month.")];
  const jobs = now(JOBS).filter((job) => job.team === team && job.project === project).sort((a, b) => Number(b.total) - Number(a.total));
  const listed = jobs.reduce((sum, job) => sum + Number(job.total), 0);
  const others = own.jobCount - jobs.length;
  return [
    heading(projectName(project) + ", " + monthName(STATE.month), totalBeside(own.total, { "data-figure": "project-total", "data-exact": own.exact })),
    jobs.length
      ? table(
          "Jobs that cost or wasted most",
          [
            { head: "Job", cell: (job) => [jobButton(job), el("span", { class: "aside" }, [job.user, job.class, (job.state || "").toLowerCase()].filter(Boolean).join(" · "))] },
            { head: "GPU-hours", number: true, cell: (job) => hours(job.gpuHours), wide: true },
            { head: "Busy", number: true, cell: (job) => percent(job.busy), wide: true },
            { head: "Waste", number: true, cell: (job) => money(job.held_idle), wide: true },
            { head: "Cost", number: true, cell: (job) => money(job.total) },
          ],
          jobs,
        )
      : lead("No job of this project has a cost in " + STATE.currency + " in this month."),
    el(
      "dl",
      { class: "facts inline" },
      others > 0 && fact(grouped(String(others)) + (others === 1 ? " other job" : " other jobs"), cents((own.onJobs - listed))),
      fact("Not on jobs", cents(own.rest)),
    ),
    el("p", { class: "note" }, "Not on jobs: storage, licences, shared cost and idle that is charged to a team and project as such."),
    componentTable(now(BY_COMPONENT).filter((row) => row.team === team && row.project === project)),
  ];
}

function oneJob(job) {
  if (!job) return [heading("Job"), lead("This job has no receipt for " + monthName(STATE.month) + " in " + STATE.currency + " on this page. Choose its month and currency above.")];
  const lines = RECEIPT_LINES.filter(([part]) => job[part] !== "0");
  return [
    heading(job.name, totalBeside(job.total, { "data-figure": "job-total", "data-exact": job.total })),
    el(
      "div",
      { class: "receipt" },
      el(
        "div",
        {},
        el("h4", {}, "Receipt for " + monthName(STATE.month) + ", " + STATE.currency),
        table(
          "Receipt",
          [
            { head: "For", cell: (line) => line.text },
            { head: STATE.currency, number: true, cell: (line) => el("span", { class: "money", "data-figure": "receipt-line", "data-exact": line.amount }, exact(line.amount)) },
          ],
          lines.map(([part, text]) => ({ part, text, amount: job[part] })),
          ["Total", el("span", { class: "money", "data-figure": "receipt-total", "data-exact": job.total }, exact(job.total))],
        ),
        el("p", { class: "note" }, job.held_idle !== "0" ? ["Of the GPU cost, ", el("strong", {}, cents(job.held_idle)), " was waste: held and not busy."] : "No waste is known of this job."),
      ),
      el(
        "dl",
        { class: "facts" },
        job.key !== null && fact("Job key", el("code", {}, job.key)),
        fact("User", job.user || "unknown"),
        fact("Ran on", [job.cluster, job.pools.map(poolName).join(", ")].filter(Boolean).join(": ")),
        fact("Class and end", [job.class || "unclassified", (job.state || "").toLowerCase()].filter(Boolean).join(", ")),
        fact("From", job.start || "unknown"),
        fact("To", job.end || "still running"),
        fact("GPU-hours", hours(job.gpuHours)),
        job.coreHours !== null && fact("Core-hours", hours(job.coreHours)),
        job.memoryHours !== null && fact("Memory, GiB-hours", hours(job.memoryHours)),
        job.energyKwh !== null && fact("Energy, kWh", hours(job.energyKwh)),
        fact("Busy", job.busy === null ? "no telemetry" : percent(job.busy, 1)),
      ),
    ),
    el("h4", {}, "Down to pool, hour, rate and rule"),
    job.key === null ? el("p", { class: "note" }, "The key of this job names somebody else and is left out here; whoever runs the cluster can give it.") : command("apportion explain job " + shellWord(job.key)),
  ];
}

function command(text) {
  const code = el("code", {}, text);
  const copy = el("button", { type: "button", class: "quiet" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
      copy.textContent = "Copied";
    } catch {
      // Without the right to the clipboard the text is selected, ready for the keyboard.
      getSelection().selectAllChildren(code);
    }
  });
  return el("p", { class: "command" }, code, copy);
}
