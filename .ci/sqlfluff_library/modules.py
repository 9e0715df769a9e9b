"""dbt's `modules` in Jinja: the parts of Python that the macros use. A var is no day while sqlfluff lints."""

import datetime as real
from types import SimpleNamespace


class _Date(real.date):
    @classmethod
    def fromisoformat(cls, _text: str) -> "_Date":
        return cls(2026, 1, 1)


datetime = SimpleNamespace(date=_Date, timedelta=real.timedelta)
