"""Which accounts and services the policy of a workspace does not know yet.

The rules are those of the seeds: an empty matcher matches anything, any other one is a LIKE pattern. Whether a rule is
valid on the day, and which of several is first, does not matter here: what no rule knows at all is unmapped.
"""

from __future__ import annotations

from pathlib import Path

from duckdb import DuckDBPyConnection

from orchestration.connectors.sql import literal
from orchestration.seeds import seed_files

SHOWN = 8
_PAYER_FIELDS = ("cluster_id", "account", "user_name", "namespace")
_COST_FIELDS = ("provider", "charge_category", "service_name", "sku_id", "resource_id")


class Policy:
    def __init__(self, seeds: Path) -> None:
        files = seed_files(seeds)
        self._payer_rules, self._cost_rules = files.get("payer_rules"), files.get("cost_rules")

    def unmapped(self, con: DuckDBPyConnection, table: str, stage: str, rank: int) -> list[str]:
        if table == "jobs" and self._payer_rules:
            return self._accounts(con, stage, rank)
        if table == "charges" and self._cost_rules:
            return self._services(con, stage, rank)
        return []

    def _accounts(self, con: DuckDBPyConnection, stage: str, rank: int) -> list[str]:
        found = con.execute(
            f"""
            select coalesce(account, namespace, '(no account)') as account, count(*) as jobs
            from {stage} as subjects
            where rank = {rank} and not exists (
                from ({_rules(self._payer_rules)}) as rules
                where coalesce(tag, '') = '' and {_matches(_PAYER_FIELDS)} and {_pair("labels", "label")}
            )
            group by 1 order by jobs desc, account
            """
        ).fetchall()
        return _listed([f"account {account} ({jobs:,} jobs)" for account, jobs in found])

    def _services(self, con: DuckDBPyConnection, stage: str, rank: int) -> list[str]:
        found = con.execute(
            f"""
            select coalesce(service_name, charge_category) as service, currency, sum(billed_cost) as billed
            from {stage} as subjects
            where rank = {rank} and not exists (
                from ({_rules(self._cost_rules)}) as rules
                where {_matches(_COST_FIELDS)} and {_pair("tags", "tag")}
            )
            group by all having billed <> 0 order by abs(billed) desc, service
            """
        ).fetchall()
        return _listed([f"service {service} ({billed:,.2f} {currency})" for service, currency, billed in found])


def _rules(path: Path | None) -> str:
    return f"from read_csv({literal(str(path))}, header = true, all_varchar = true)"


def _matches(fields: tuple[str, ...]) -> str:
    return " and ".join(f"(coalesce(rules.{f}, '') = '' or subjects.{f} like rules.{f})" for f in fields)


def _pair(objects: str, rule: str) -> str:
    """Whether a `key=pattern` of the rule fits an entry of the subject's JSON object."""
    key, pattern = f"split_part(rules.{rule}, '=', 1)", f"rules.{rule}[strpos(rules.{rule}, '=') + 1:]"
    value = f"map_extract_value(cast(cast(subjects.{objects} as json) as map(varchar, varchar)), {key})"
    readable = f"subjects.{objects} is not null and json_type(subjects.{objects}) = 'OBJECT'"
    return f"(coalesce(rules.{rule}, '') = '' or ({readable} and {value} like {pattern}))"


def _listed(found: list[str]) -> list[str]:
    return [*found[:SHOWN], *([f"… and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])]
