"""One self-contained HTML file: template, style, script and data. Nothing in it is fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_HERE = Path(__file__).parent

_SCRIPTS = (
    "dom", "format", "data", "state", "tips", "tables", "stack", "sankey", "week",
    "month", "trend", "flow", "idle", "waste", "books", "drill", "main",
)  # fmt: skip
"""In the order in which they build on each other; joined into one function, so that nothing of them is global."""


def html(data: dict[str, Any], title: str) -> str:
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=title,
            is_team=data["variant"] == "team",
            has_days=bool(data["days"]),
            policy=_policy(),
            style=Markup(_style()),
            script=Markup(_script()),
            data=Markup(_embedded(data)),
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _style() -> str:
    return (_HERE / "style.css").read_text(encoding="utf-8")


@cache
def _script() -> str:
    parts = [(_HERE / "js" / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


@cache
def _policy() -> str:
    """The browser runs this script and this style and refuses every other one, and every request."""
    return (
        f"default-src 'none'; script-src {_digest(_script())}; style-src {_digest(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(data: dict[str, Any]) -> str:
    """JSON that no name can end: `</script>` and `<!--` lose their first letter to an escape that JSON reads back."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
