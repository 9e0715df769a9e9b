// Puts it together: controls, theme, and what is drawn again when something changes.

function drawAll() {
  drawMonth();
  drawTrend();
  drawFlow();
  drawIdle();
  drawWaste();
  drawDrill(false);
}

function fillControls() {
  const month = byId("pick-month");
  const currency = byId("pick-currency");
  month.replaceChildren(...[...ALL_MONTHS].reverse().map((one) => el("option", { value: one }, monthName(one))));
  currency.replaceChildren(...CURRENCIES.map((one) => el("option", { value: one }, one)));
  month.value = STATE.month;
  currency.value = STATE.currency;
  byId("currency-control").hidden = CURRENCIES.length < 2;
}

function theme() {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("apportion-theme");
    } catch {
      return null;
    }
  };
  let chosen = stored();
  const apply = () => {
    const dark = chosen ? chosen === "dark" : system.matches;
    document.documentElement.setAttribute("data-theme", dark ? "dark" : "light");
    button.setAttribute("aria-pressed", String(dark));
  };
  button.addEventListener("click", () => {
    chosen = document.documentElement.getAttribute("data-theme") === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("apportion-theme", chosen);
    } catch {
      // A browser that keeps nothing for files still changes its colours.
    }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

function start() {
  theme();
  if (!DATA.days.length) return;
  readAddress();
  fillControls();
  byId("coverage").textContent = "Days " + DATA.days[0] + " to " + DATA.days[DATA.days.length - 1] + ", " + DATA.days.length + " loaded.";
  byId("pick-month").addEventListener("change", (event) => show({ month: event.target.value }));
  byId("pick-currency").addEventListener("change", (event) => show({ currency: event.target.value }));
  onChange((what) => {
    fillControls();
    if (what !== "drill") drawAll();
    if (what !== "view") drawDrill(true);
  });
  drawAll();
  drawBooks();
  document.documentElement.setAttribute("data-ready", "");
}

start();
