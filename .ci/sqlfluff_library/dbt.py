"""The few of dbt's cross-database macros that the models call, as sqlfluff needs them: text of the right shape."""

from collections.abc import Sequence


def type_string() -> str:
    return "string"


def concat(parts: Sequence[str]) -> str:
    return " || ".join(parts)


def hash(field: str) -> str:
    return f"md5({field})"


def listagg(measure: str, delimiter_text: str, order_by_clause: str) -> str:
    return f"string_agg({measure}, {delimiter_text} {order_by_clause})"
