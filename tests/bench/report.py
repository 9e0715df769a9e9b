"""What was measured, as the tables and the chart of docs/performance.md: `python tests/bench/report.py`."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE, CHART = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.svg"
BEGIN, END = "<!-- measured: written by tests/bench/report.py -->", "<!-- end of what was measured -->"
BARS = ("scan", "roll_up", "script", "polars", "pandas", "growing")
WIDTH, BAR, LABEL = 760, 26, 270


def main() -> None:
    results = json.loads((ROOT / "data" / "bench" / "results.json").read_text())
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{_tables(results)}\n{END}{after}")
    if "standard" in results:
        CHART.write_text(_chart(results["standard"]))


def _tables(results: dict) -> str:
    pieces = []
    for section, found in results.items():
        pieces.append(f"### {section}: {found['machine']}, {found['at']}\n")
        pieces.append("| | rows | wall s | CPU s | rows/s | peak MB |\n| --- | --- | --- | --- | --- | --- |")
        pieces += [_line(row) for row in found["measured"].values()]
        pieces.append("\n| ratio | |\n| --- | --- |")
        pieces += [f"| {name} | {value:.2f} |" for name, value in found["ratios"].items()]
        pieces.append("")
        if found["broken"]:
            pieces.append("Not reached: " + "; ".join(found["broken"]) + ".\n")
    return "\n".join(pieces).rstrip("\n")


def _line(row: dict) -> str:
    speed = row["rows"] / row["wall"]
    return (
        f"| {row['name']} | {row['rows']:,} | {row['wall']:.1f} | {row['cpu']:.1f} | {speed:,.0f}"
        f" | {row['memory'] / 1e6:,.0f} |"
    )


def _chart(found: dict) -> str:
    """Processor time as bars, in one colour that can be read on light and on dark pages."""
    seconds = {key: (one["name"], one["cpu"]) for key, one in found["measured"].items()}
    seconds["growing"] = ("Apportion, what grows with the data", found["ratios"]["growing CPU s"])
    shown = [seconds[key] for key in BARS if key in seconds]
    most = max(value for _, value in shown)
    bars = []
    for place, (name, value) in enumerate(shown):
        top = 34 + place * (BAR + 8)
        length = value / most * (WIDTH - LABEL - 70)
        bars.append(
            f'<text x="{LABEL - 8}" y="{top + 17}" text-anchor="end">{name}</text>'
            f'<rect x="{LABEL}" y="{top}" width="{length:.1f}" height="{BAR}" fill="#4c7fb8"/>'
            f'<text x="{LABEL + length + 6:.1f}" y="{top + 17}">{value:.1f} s</text>'
        )
    height = 40 + len(shown) * (BAR + 8)
    title = "CPU seconds for a week of 2,000 GPUs at 30 s"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
        f' font-size="13" fill="#777" role="img" aria-label="{title}">'
        f'<text x="8" y="20" font-weight="bold">{title}</text>{"".join(bars)}</svg>\n'
    )


if __name__ == "__main__":
    main()
