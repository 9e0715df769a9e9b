"""A real browser for the pages that people open: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from tests.browser.chromium import browser

__all__ = ["browser"]
