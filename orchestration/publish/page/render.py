"""One self-contained HTML file: template, style, script and data. Nothing in it is fetched from anywhere."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from orchestration.publish.html import digest, style_sheet, templates

_HERE = Path(__file__).parent

_SCRIPTS = (
    "dom", "format", "data", "state", "tips", "tables", "stack", "sankey", "week",
    "month", "trend", "flow", "idle", "waste", "books", "drill", "main",
)  # fmt: skip
"""In the order in which they build on each other; joined into one function, so that nothing of them is global."""


def html(data: dict[str, Any], title: str) -> str:
    return (
        templates(_HERE)
        .get_template("report.html.j2")
        .render(
            title=title,
            is_team=data["variant"] == "team",
            has_days=bool(data["days"]),
            policy=_policy(),
            style=Markup(style_sheet(_HERE)),
            script=Markup(_script()),
            data=Markup(_embedded(data)),
        )
    )


@cache
def _script() -> str:
    parts = [(_HERE / "js" / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


@cache
def _policy() -> str:
    """The browser runs this script and this style and refuses every other one, and every request."""
    return (
        f"default-src 'none'; script-src {digest(_script())}; style-src {digest(style_sheet(_HERE))}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _embedded(data: dict[str, Any]) -> str:
    """JSON that no name can end: `</script>` and `<!--` lose their first letter to an escape that JSON reads back."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
