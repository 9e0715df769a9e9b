// Numbers and dates as people read them. Exact amounts arrive as text and stay text: only separators are put in.

const MINUS = "\u2212";
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

function grouped(text) {
  const negative = text.startsWith("-");
  const [whole, decimals] = (negative ? text.slice(1) : text).split(".");
  const separated = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  const isZero = /^[0.]*$/.test(text.replace("-", ""));
  return (negative && !isZero ? MINUS : "") + separated + (decimals === undefined ? "" : "." + decimals);
}

// To the cent; of an amount that came as text, or of a number that was rounded to cents before it came.
function cents(amount) {
  if (amount === null || amount === undefined) return "–";
  if (typeof amount === "number") return grouped(amount.toFixed(2));
  const [whole, decimals = ""] = amount.split(".");
  // Text is rounded as an integer, half away from zero like SQL: a large amount has more digits than a number.
  const thousandths = BigInt(whole + decimals.padEnd(3, "0").slice(0, 3));
  const rounded = String((thousandths < 0n || whole.startsWith("-") ? thousandths - 5n : thousandths + 5n) / 10n);
  const digits = rounded.replace("-", "").padStart(3, "0");
  return grouped((rounded.startsWith("-") ? "-" : "") + digits.slice(0, -2) + "." + digits.slice(-2));
}

// An estimate has no cents to show.
function whole(text) {
  return grouped(Number(text).toFixed(0));
}

function signed(text) {
  const shown = cents(text);
  return shown.startsWith(MINUS) || /^[0.,]*$/.test(shown) ? shown : "+" + shown;
}

// With all nine decimals.
function exact(text) {
  return grouped(text === "0" ? "0.000000000" : text);
}

function compact(number) {
  const size = Math.abs(number);
  const [divisor, unit] = size >= 1e9 ? [1e9, "bn"] : size >= 1e6 ? [1e6, "m"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
  const scaled = size / divisor;
  const digits = scaled >= 100 || Number.isInteger(scaled) ? 0 : scaled >= 10 ? 1 : 2;
  return (number < 0 ? MINUS : "") + String(Number(scaled.toFixed(digits))) + unit;
}

function percent(share, digits = 0) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const value = share * 100;
  if (value > 0 && value < 0.5 && digits === 0) return "< 1 %";
  return value.toFixed(digits).replace("-", MINUS) + " %";
}

function hours(number) {
  if (number === null || number === undefined) return "–";
  return grouped(number.toFixed(number < 100 ? 1 : 0));
}

function monthName(month) {
  const [year, number] = month.split("-");
  return MONTHS[Number(number) - 1] + " " + year;
}

function longDay(day) {
  return Number(day.slice(8)) + " " + MONTHS[Number(day.slice(5, 7)) - 1].slice(0, 3) + " " + day.slice(0, 4);
}

function shortMonth(month) {
  const [year, number] = month.split("-");
  return MONTHS[Number(number) - 1].slice(0, 3) + " " + year.slice(2);
}

function shortDay(day) {
  return Number(day.slice(8)) + " " + MONTHS[Number(day.slice(5, 7)) - 1].slice(0, 3);
}

function weekdayOf(day) {
  return (new Date(day + "T00:00:00Z").getUTCDay() + 6) % 7;
}

function hourSpan(hour) {
  const two = (number) => String(number).padStart(2, "0");
  return two(hour) + ":00–" + two((hour + 1) % 24) + ":00";
}

// As a shell takes it. Keys of jobs may hold anything that a user typed.
function shellWord(text) {
  return /^[\w@%+=:,.\/-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
}
