// Cost by team over time: days of a month, weeks of a quarter, months of a year.

const MOST_COLOURS = 8;
const RANGES = [
  ["month", "This month"],
  ["quarter", "13 weeks"],
  ["all", "All"],
];
let trendRange = "month";

const teamTone = (place) => (place < MOST_COLOURS ? "tone-" + place : "tone-other");

function drawTrend() {
  const places = daysInRange();
  const unit = places.length <= 45 ? "day" : places.length <= 190 ? "week" : "month";
  const series = trendSeries();
  const buckets = bucketsOf(places, unit, series);
  const caption = (IS_TEAM ? "Cost" : "Cost by team") + " per " + unit + " in " + STATE.currency;
  const chart = el("div", { class: "chart-host" });
  byId("trend").replaceChildren(
    el("div", { class: "row" }, lead("Per " + unit + ", in " + STATE.currency + "."), choice("Range", "range", RANGES, trendRange, (value) => {
      trendRange = value;
      drawTrend();
      document.querySelector("input[name=range]:checked").focus();
    })),
    chart,
    ...(series.length > 1 ? [legend(series.map((one) => [one.tone, one.name]))] : []),
    behind(caption, () =>
      table(
        caption,
        [
          { head: unit[0].toUpperCase() + unit.slice(1), cell: (bucket) => bucket.title },
          ...(series.length > 1 ? series.map((one, index) => ({ head: one.name, number: true, cell: (bucket) => cents(bucket.values[index]) })) : []),
          { head: "All", number: true, cell: (bucket) => cents(bucket.values.reduce((sum, value) => sum + value, 0)) },
        ],
        buckets,
      ),
    ),
  );
  drawn(chart, (width) => stack(buckets, series, caption + ".", width));
}

function daysInRange() {
  const places = DATA.days.map((_, place) => place);
  if (trendRange === "all") return places;
  const last = places.filter((place) => DATA.days[place].slice(0, 7) <= STATE.month).pop();
  if (trendRange === "month") return places.filter((place) => DATA.days[place].startsWith(STATE.month));
  return places.filter((place) => place <= last && place > last - 91);
}

// The dearest teams of all months have their colours everywhere on the page; the others are drawn together.
function trendSeries() {
  const rows = DATA.daily.filter(([, currency]) => currency === STATE.currency);
  const own = rows.filter(([team]) => team < MOST_COLOURS);
  const rest = rows.filter(([team]) => team >= MOST_COLOURS);
  return [
    ...own.map(([team, , costs]) => ({ name: teamName(team), tone: teamTone(team), rows: [costs] })),
    ...(rest.length ? [{ name: rest.length === 1 ? teamName(rest[0][0]) : "Other teams (" + rest.length + ")", tone: "tone-other", rows: rest.map((row) => row[2]) }] : []),
  ];
}

function bucketsOf(places, unit, series) {
  const found = new Map();
  for (const place of places) {
    const day = DATA.days[place];
    const key = unit === "day" ? day : unit === "month" ? day.slice(0, 7) : mondayOf(day);
    if (!found.has(key)) {
      const title = unit === "day" ? WEEKDAYS[weekdayOf(day)].slice(0, 3) + " " + shortDay(day) : unit === "month" ? monthName(key) : "Week of " + shortDay(key);
      found.set(key, { label: unit === "month" ? shortMonth(key) : shortDay(key), title, values: series.map(() => 0) });
    }
    const bucket = found.get(key);
    series.forEach((one, index) => {
      for (const costs of one.rows) bucket.values[index] += costs[place];
    });
  }
  return [...found.values()];
}

function mondayOf(day) {
  const date = new Date(day + "T00:00:00Z");
  date.setUTCDate(date.getUTCDate() - weekdayOf(day));
  return date.toISOString().slice(0, 10);
}
