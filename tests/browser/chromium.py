"""Opening a page from its file, and hearing everything that it asks for and complains about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

READY_SECONDS = 30


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """On a user's machine without Chromium these tests are skipped; where everything is to be tested they fail."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        reason = "no Chromium is installed (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@dataclass
class Opened:
    """A page that is open, what it has asked for and what it has complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        """What a person reads there, without the characters that only typography needs."""
        return self.page.locator(selector).inner_text().replace("\u2212", "-").replace(",", "").strip()


def opened(browser: Browser, file: Path, address: str = "", width: int = 1280, **options: Any) -> Opened:
    """The page of a file, in a profile of its own that has seen nothing before."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    found = Opened(page)
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.goto(file.as_uri() + address, timeout=READY_SECONDS * 1000)
    return found
