// Stacked bars over time. Arrow keys walk along the bars and read them out.

const STACK_HEIGHT = 300;

function niceStep(span, steps) {
  const rough = span / steps || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

// buckets: [{ label, title, values: [number per series] }], series: [{ name, tone }]
function stack(buckets, series, label, width) {
  const margin = { top: 10, right: 4, bottom: 26, left: 48 };
  const height = STACK_HEIGHT;
  const up = buckets.map((bucket) => bucket.values.reduce((sum, value) => sum + Math.max(0, value), 0));
  const down = buckets.map((bucket) => bucket.values.reduce((sum, value) => sum + Math.min(0, value), 0));
  const highest = Math.max(...up, 0);
  const lowest = Math.min(...down, 0);
  const step = niceStep(highest - lowest || 1, 4);
  const top = Math.ceil(highest / step) * step || step;
  const bottom = Math.abs(lowest) < highest / 200 ? 0 : Math.floor(lowest / step) * step;
  const y = (value) => margin.top + ((top - value) / (top - bottom)) * (height - margin.top - margin.bottom);
  const slot = (width - margin.left - margin.right) / buckets.length;
  const thick = Math.max(1, Math.min(46, slot * 0.76));
  const x = (place) => margin.left + slot * place + (slot - thick) / 2;

  const grid = [];
  for (let value = bottom; value <= top + step / 2; value += step) {
    grid.push(
      svg("line", { class: Math.abs(value) < step / 2 ? "axis" : "grid", x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick", x: margin.left - 8, y: y(value) + 4, "text-anchor": "end" }, compact(value)),
    );
  }
  const every = Math.max(1, Math.ceil(58 / slot));
  const ticks = buckets.map((bucket, place) =>
    place % every === 0 && x(place) + thick / 2 < width - 16
      ? svg("text", { class: "tick", x: x(place) + thick / 2, y: height - 8, "text-anchor": "middle" }, bucket.label)
      : null,
  );
  const told = (place) => {
    const bucket = buckets[place];
    const parts = series
      .map((one, index) => [one.name, bucket.values[index]])
      .filter(([, value]) => Math.abs(value) >= 0.005)
      .map(([name, value]) => name + "  " + cents(value));
    const sum = bucket.values.reduce((all, value) => all + value, 0);
    return [bucket.title + "  " + cents(sum), ...(series.length > 1 ? parts.slice().reverse() : [])];
  };
  const bars = buckets.map((bucket, place) => {
    let above = 0;
    let below = 0;
    const parts = series.map((one, index) => {
      const value = bucket.values[index];
      if (!value) return null;
      const from = value > 0 ? above : below;
      const to = from + value;
      if (value > 0) above = to;
      else below = to;
      const tall = Math.abs(y(from) - y(to));
      return svg("rect", {
        class: "part " + one.tone,
        x: x(place),
        y: Math.min(y(from), y(to)),
        width: thick,
        // A hair of ground between parts tells neighbours of similar colour apart.
        height: Math.max(0.3, tall > 3 ? tall - 1 : tall),
      });
    });
    return svg(
      "g",
      { class: "column", "data-tip": told(place).join("\n") },
      svg("rect", { class: "hit", x: margin.left + slot * place, y: margin.top, width: slot, height: height - margin.top - margin.bottom }),
      parts,
    );
  });

  let at = -1;
  const chart = svg(
    "svg",
    { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0", "aria-label": label + " Arrow keys read the bars." },
    grid,
    bars,
    ticks,
  );
  const walk = (to) => {
    at = Math.max(0, Math.min(buckets.length - 1, to));
    bars.forEach((one, place) => one.classList.toggle("chosen", place === at));
    const box = bars[at].getBoundingClientRect();
    showTip(told(at), box.left + box.width / 2, box.top + 40);
    say(told(at).join(", "));
  };
  chart.addEventListener("keydown", (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buckets.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    walk(to);
  });
  chart.addEventListener("blur", () => {
    bars.forEach((one) => one.classList.remove("chosen"));
    hideTip();
  });
  return chart;
}
