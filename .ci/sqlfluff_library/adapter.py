"""What `adapter` means while sqlfluff lints: enough SQL of the right shape, with no engine behind it.

A dispatched macro is stood in for by a function call of the same name, one that joins (`cross_join_…`) by a join to a
table with the column that its last argument names, one that is a query by a query, and a list by a list. The macros'
own SQL is run by dbt, not linted.
"""

from collections.abc import Callable


def dispatch(name: str, _package: str = "") -> Callable[..., object]:
    def stand_in(*arguments: object) -> object:
        listed = ", ".join(str(argument) for argument in arguments)
        if name.startswith("cross_join_"):
            column = arguments[-1]
            listed = ", ".join(str(argument) for argument in arguments[:-1])
            return f"cross join unnest({name}({listed})) as {column}_items({column})"
        if name == "json_pairs":
            return f"select {arguments[-1]}, pair_key, pair_value from {arguments[0]} as pairs"
        if name == "parts_of_each":
            parts = ", ".join(f"0 as {piece['part']}" for piece in arguments[1])
            return f"select parts.*, {parts} from ({arguments[0]}) as parts"
        if name == "running_sums":
            names = [one[kind] for one in arguments[1] for kind in ("running", "total") if kind in one]
            sums = ", ".join(f"0 as {name}" for name in names)
            return f"select {sums}, parts.* from {arguments[0]} as parts"
        if name == "window_stretches":
            return [("2026-01-01", "2026-01-02")]
        return f"{name}({listed})"

    return stand_in


def quote(identifier: str) -> str:
    return f'"{identifier}"'
