// The data of this file, with rows as objects.

const DATA = JSON.parse(byId("data").textContent);
const IS_TEAM = DATA.variant === "team";

function records(table) {
  return table.rows.map((row) => Object.fromEntries(table.columns.map((column, place) => [column, row[place]])));
}

const MONTH_ROWS = records(DATA.months);
const ALL_MONTHS = [...new Set(MONTH_ROWS.map((row) => row.month))].sort();
const CURRENCIES = [...new Set(MONTH_ROWS.map((row) => row.currency))];
const KINDS = records(DATA.kinds);
const HOURS = records(DATA.hours);
const BY_PROJECT = records(DATA.byProject);
const BY_COMPONENT = records(DATA.byComponent);
const JOBS = records(DATA.jobs);
const CLOSES = records(DATA.closes);
const TRUE_UPS = records(DATA.trueUps);
const REPORTING = records(DATA.reporting);
const COMPONENT_NAMES = Object.fromEntries(DATA.components);

const KIND_NAMES = {
  direct: ["Used", "What was held and used, by its driver"],
  idle: ["Idle", "Capacity that nobody used, by the rule of its cause"],
  shared: ["Shared", "Overhead such as support and operations"],
  burst: ["Burst", "Use above entitlement, and what lenders get for it"],
  outcome_credit: ["Credits for lost work", "Work that was lost through no fault of the user"],
  adjustment: ["Adjustments", "Agreed changes, each with a reason and a funder"],
  unclaimed: ["Claimed by no rule", "What no rule gives to a payer"],
};
const CAUSE_NAMES = {
  unscheduled: ["Unscheduled", "nobody had it"],
  reserved: ["Reserved", "held by a reservation, not used"],
  down: ["Down", "drained or failed"],
  stranded: ["Stranded", "GPUs free where cores or memory were exhausted"],
};
const CAUSES = Object.keys(CAUSE_NAMES);

const teamName = (place) => DATA.teams[place][1];
const poolName = (place) => DATA.pools[place][1];
const projectName = (place) => (place === null ? "No project" : DATA.projects[place][1]);
const componentName = (component) => COMPONENT_NAMES[component] || component;

function now(rows) {
  return rows.filter((row) => row.month === STATE.month && (row.currency === undefined || row.currency === STATE.currency));
}

function total(rows, key = "cost") {
  return rows.reduce((sum, row) => sum + (row[key] || 0), 0);
}
