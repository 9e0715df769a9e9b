"""A statement as one HTML file for the screen and for A4 paper. It needs no script and fetches nothing."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from orchestration.publish.html import digest, style_sheet, templates
from orchestration.publish.statements import words
from orchestration.publish.statements.figures import MOST_JOBS, Row, Statement
from orchestration.publish.statements.sheets import part_name

_HERE = Path(__file__).parent


def html_of(statement: Statement) -> bytes:
    team, period = statement.team, statement.period
    title = f"{team['team_name']}, {words.month(period.month)}"
    style = style_sheet(_HERE) + _footer(f"{title}{'' if team['is_closed'] else ' (draft)'}")
    page = (
        templates(_HERE)
        .get_template("statement.html.j2")
        .render(
            title=title,
            policy=f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'",
            style=Markup(style),
            statement=statement,
            team=team,
            month=period.month,
            period=period.name,
            shown=statement.names.shown,
            is_clean=statement.names.is_clean,
            words=words,
            currencies=[row for row in statement["totals"] if row["currency"]],
            reporting=next(row for row in statement["totals"] if row["currency"] is None),
            parts=lambda dimension, currency: [
                {**row, "name": part_name(statement, row)}
                for row in statement["breakdown"]
                if (row["dimension"], row["currency"]) == (dimension, currency)
            ],
            of=lambda section, currency: [row for row in statement[section] if row["currency"] == currency],
            wasteful=_ranked(statement, "waste_rank"),
            dearest=_ranked(statement, "cost_rank"),
            explain=lambda pool=None: words.explain_team(statement.team_id, period.name, pool),
            most_jobs=MOST_JOBS,
        )
    )
    return page.encode()


def _ranked(statement: Statement, rank: str) -> list[Row]:
    jobs = [job for job in statement["jobs"] if job[rank] is not None and job[rank] <= MOST_JOBS]
    places = {row["currency"]: place for place, row in enumerate(statement["totals"])}
    return sorted(jobs, key=lambda job: (places.get(job["currency"], len(places)), job[rank]))


def _footer(text: str) -> str:
    """Whose paper it is, on each page. A style sheet says it, so letters that mean something there are numbers."""
    safe = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in " ,.()") else f"\\{ord(letter):06x}"
        for letter in text
    )
    return f'@page {{ @bottom-left {{ content: "{safe}"; }} }}\n'
