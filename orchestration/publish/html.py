"""What all HTML here has in common: one file, everything escaped, and a policy that names what may run in it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@cache
def templates(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def style_sheet(folder: Path) -> str:
    return (folder / "style.css").read_text(encoding="utf-8")


def digest(text: str) -> str:
    """As a Content-Security-Policy names a script or a style that it lets in."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
