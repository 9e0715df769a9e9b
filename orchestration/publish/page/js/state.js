// What is being looked at. It lives in the address, so that Back works and a view can be sent to somebody.

const STATE = { month: null, currency: null, team: null, project: null, job: null };
const LISTENERS = [];

function readAddress() {
  const wanted = new URLSearchParams(location.hash.startsWith("#view?") ? location.hash.slice(6) : "");
  const place = (name, rows) => {
    const found = rows.findIndex((row) => row[0] === wanted.get(name));
    return found < 0 ? null : found;
  };
  STATE.month = ALL_MONTHS.includes(wanted.get("month")) ? wanted.get("month") : STATE.month || ALL_MONTHS[ALL_MONTHS.length - 1];
  STATE.currency = CURRENCIES.includes(wanted.get("currency")) ? wanted.get("currency") : STATE.currency || CURRENCIES[0];
  STATE.team = IS_TEAM ? 0 : place("team", DATA.teams);
  STATE.project = STATE.team !== null && wanted.has("project") ? (wanted.get("project") === "" ? -1 : place("project", DATA.projects)) : null;
  STATE.job = STATE.project !== null && wanted.has("job") ? wanted.get("job") : null;
}

function address(change) {
  const next = { ...STATE, ...change };
  const query = new URLSearchParams({ month: next.month, currency: next.currency });
  if (next.team !== null && !IS_TEAM) query.set("team", DATA.teams[next.team][0]);
  // -1 stands for what has no project; an empty name in the address.
  if (next.project !== null) query.set("project", next.project === -1 ? "" : DATA.projects[next.project][0]);
  if (next.job !== null) query.set("job", next.job);
  return "#view?" + query;
}

function onChange(listener) {
  LISTENERS.push(listener);
}

function changed(what) {
  for (const listener of LISTENERS) listener(what);
}

// Another month or currency of the same view: not worth a step Back.
function show(change) {
  Object.assign(STATE, change);
  history.replaceState(null, "", address({}));
  changed("view");
}

// A step deeper or higher.
function go(change) {
  Object.assign(STATE, change);
  history.pushState(null, "", address({}));
  changed("drill");
}

addEventListener("popstate", () => {
  // A link to a section changes the address, too; it changes nothing that is looked at.
  if (location.hash && !location.hash.startsWith("#view?")) return;
  readAddress();
  changed("back");
});
