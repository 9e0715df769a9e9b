"""What a team's page must not say: the names of others.

A job may be called after another team, a pool after its owner, a correction may tell whose mapping changed. On a team's
page every other team's name and id is taken out of such text, as whole words in any case, and the place is marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

WITHHELD = "•••"


class Names:
    def __init__(self, withheld: Iterable[str] = ()) -> None:
        # The longest first, so that "search quality" does not leave "quality" standing when "search" is a team, too.
        words = sorted({word for word in withheld if word and word.strip()}, key=lambda word: (-len(word), word))
        pattern = "|".join(re.escape(word) for word in words)
        # An underscore joins words in Python's \b; in names that people give it separates them.
        self._pattern = re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", re.IGNORECASE) if words else None

    def shown(self, text: str | None) -> str | None:
        """The text without the names that are withheld."""
        return text if text is None or self._pattern is None else self._pattern.sub(WITHHELD, text)

    def is_clean(self, text: str | None) -> bool:
        return text is None or self._pattern is None or not self._pattern.search(text)
