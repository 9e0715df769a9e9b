"""`apportion`: who pays for every cent of shared ML infrastructure, and why."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from orchestration.errors import ApportionError
from orchestration.workspace import PROJECT_ROOT, Workspace

app = typer.Typer(
    help="""Who pays for every cent of shared ML infrastructure, and why.

    A workspace is three things: a [bold]sources.yml[/] (which bills, schedulers and telemetry to read), a
    [bold]seeds[/] folder (the policy: who pays, how much, from when, why) and a [bold]data[/] folder (everything
    that is made). Without options the project's own are used; several workspaces can live side by side.

    Try it:  [bold]apportion demo[/]  generates a company, runs it and prints who pays.
    """,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
console = Console(highlight=False)


@app.callback()
def locate(
    context: typer.Context,
    sources: Annotated[Path | None, typer.Option(help="The sources.yml to use [APPORTION_SOURCES].")] = None,
    seeds: Annotated[
        Path | None, typer.Option(help="The folder with policy/ and reference/ [APPORTION_SEEDS].")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Where everything that is made goes [APPORTION_DATA].")] = None,
) -> None:
    context.obj = Workspace.locate(sources, seeds, data)


def readable(function: Callable[..., None]) -> Callable[..., None]:
    """Errors that people can mend are one message with a remedy, not a traceback."""

    @wraps(function)
    def guarded(*arguments: object, **options: object) -> None:
        # Dagster marks several of its settled features as beta; that is no news to whoever runs a command.
        warnings.filterwarnings("ignore", module="dagster")
        try:
            function(*arguments, **options)
        except ApportionError as error:
            # Escaped: node lists and paths may hold brackets, which are markup to the console.
            console.print(f"[bold red]✗[/] {escape(error.message)}", soft_wrap=True)
            if error.remedy:
                console.print(f"  [bold]→[/] {escape(error.remedy)}", soft_wrap=True)
            raise typer.Exit(1) from None

    return guarded


From = Annotated[datetime, typer.Option("--from", formats=["%Y-%m-%d"], help="First UTC day.")]
AsJson = Annotated[bool, typer.Option("--json", help="Everything, for machines; amounts are text.")]
To = Annotated[datetime, typer.Option("--to", formats=["%Y-%m-%d"], help="First UTC day no longer included.")]
Target = Annotated[str | None, typer.Option(help="Where the models run: duckdb or bigquery [APPORTION_TARGET].")]


def _on(context: typer.Context, target: str | None) -> Workspace:
    workspace: Workspace = context.obj
    return workspace.on(target) if target else workspace


@app.command()
@readable
def demo(
    context: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=35, help="How many days of the company to generate.")] = 35,
) -> None:
    """Generate the demo company, run all of it and show who pays.

    Two Slurm clusters and one Kubernetes cluster, 480 GPUs, 25,000 jobs, 24 million telemetry samples, cloud bills
    and a cost sheet, in the raw formats that real systems print, with the awkward things that real ones have.
    """
    from datetime import timedelta

    from orchestration.dbt import prepare
    from orchestration.demo import FIRST_DAY, SCENARIO, generate
    from orchestration.scenarios import scenarios_of

    workspace: Workspace = context.obj
    started = time.monotonic()
    with console.status("generating the company"):
        counts = generate(workspace.data, days=days)
    console.print(f"generated in {time.monotonic() - started:.0f} s: " + _counted(counts))
    with console.status("reading the dbt project, once"):
        prepare(workspace)
    _run(workspace, FIRST_DAY, FIRST_DAY + timedelta(days=days))
    if SCENARIO in scenarios_of(workspace):
        week = FIRST_DAY + timedelta(days=min(days, 7))
        console.print(f"\nWhat if the platform paid for everything idle, {FIRST_DAY} up to {week}?")
        _simulate(workspace, SCENARIO, FIRST_DAY, week)
    if days >= 31:
        _close_demo(workspace)
    console.print(f"\nask on: apportion explain team nlp --month {FIRST_DAY:%Y-%m}")


@app.command()
@readable
def run(
    context: typer.Context,
    start: From,
    end: To,
    target: Target = None,
    retroactive: Annotated[
        str | None, typer.Option(help="Why changed policy may reach into closed months; shown on the true-ups.")
    ] = None,
) -> None:
    """Land, build, check and publish the UTC days from --from up to, not including, --to.

    Runs the same Dagster assets as the UI does, in this process. A day can be run as often as you like: equal
    inputs and policy give equal tables, and days that are not named do not change.
    """
    _run(_on(context, target), start.date(), end.date(), retroactive)


@app.command()
@readable
def status(context: typer.Context, target: Target = None) -> None:
    """What is loaded, what is stale, what is quarantined, and whether the books reconcile."""
    from orchestration.status import show_status

    show_status(_on(context, target), console)


@app.command()
@readable
def check(
    context: typer.Context,
    source: Annotated[list[str] | None, typer.Option(help="Only this source; may be given several times.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also fail on bad rows, doubts and unmapped names.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Read all files of the sources without loading them, and say what they are and what is odd about them.

    Ends with code 1 if a file would be refused (with --strict: if there is any remark), for use in CI.
    """
    from orchestration.check.files import check_source
    from orchestration.check.policy import Policy
    from orchestration.check.printing import as_json as json_of
    from orchestration.check.printing import print_file, print_summary
    from orchestration.settings import load_sources

    workspace: Workspace = context.obj
    sources = load_sources(workspace.sources_file, workspace.data)
    absent = [name for name in source or () if name not in {known.name for known in sources}]
    if absent:
        raise ApportionError(
            f"{workspace.sources_file}: there is no source '{absent[0]}'",
            f"choose from {', '.join(known.name for known in sources)}",
        )
    policy, found = Policy(workspace.seeds), []
    for known in sources:
        for one in check_source(workspace, known, policy) if not source or known.name in source else ():
            found.append(one)
            if not as_json:
                print_file(one, console)
    if as_json:
        print(json_of(found))
    else:
        print_summary(found, console)
    if any(one.has_failed or (strict and one.has_remarks) for one in found):
        raise typer.Exit(1)


@app.command()
@readable
def simulate(
    context: typer.Context,
    scenario: Annotated[str, typer.Option(help="A folder below seeds/scenarios/, with the policy rows that differ.")],
    start: From,
    end: To,
) -> None:
    """What if: work days out under another policy, beside the books, and show what would change for whom."""
    _simulate(context.obj, scenario, start.date(), end.date())


explain = typer.Typer(
    help="Why a job or a team pays what it pays: bill, hours, rate, weight, rule and reason, worked out again.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(explain, name="explain")


@explain.command("job")
@readable
def explain_job(
    context: typer.Context,
    job: Annotated[str, typer.Argument(help="The job's id, or the full key of one run.")],
    day: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="One UTC day of the run.")] = None,
    hour: Annotated[int | None, typer.Option(min=0, max=23, help="Work out this hour of the day.")] = None,
    as_json: AsJson = False,
) -> None:
    """What a run costs, and why: from the bill to the last decimal of every line."""
    from orchestration.explain.answer import explain_job as answer
    from orchestration.warehouse.target import require_duckdb

    require_duckdb(context.obj, "a receipt")
    answer(context.obj, job, day.date() if day else None, hour, as_json, console)


@explain.command("team")
@readable
def explain_team(
    context: typer.Context,
    team: Annotated[str, typer.Argument(help="The team's id.")],
    month: Annotated[datetime, typer.Option(formats=["%Y-%m"], help="The month.")],
    day: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="One UTC day of the month.")] = None,
    pool: Annotated[str | None, typer.Option(help="Work out every component of this pool.")] = None,
    as_json: AsJson = False,
) -> None:
    """What a team pays in a month, and why: pools, idle by cause, transfers, overhead."""
    from orchestration.explain.answer import explain_team as answer
    from orchestration.warehouse.target import require_duckdb

    require_duckdb(context.obj, "a receipt")
    answer(context.obj, team, month.date(), day.date() if day else None, pool, as_json, console)


@app.command()
@readable
def close(
    context: typer.Context,
    month: Annotated[datetime, typer.Argument(formats=["%Y-%m"], help="The month to close.")],
    override: Annotated[
        str | None, typer.Option(help="Why to close although checks fail; stored with the close.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and show what would be charged.")] = False,
    target: Target = None,
) -> None:
    """Close a month for good: check it, append its invoices to the ledger, post its journal.

    A closed month never changes. What turns out to be different later becomes true-ups of the month that is open then.
    """
    from orchestration.ledger.printing import close_and_print, print_closing

    workspace = _on(context, target)
    with console.status(f"closing {month:%Y-%m}") as status:
        from orchestration import progress

        progress.listen(status.update)
        if dry_run:
            passed = print_closing(workspace, month.date(), console)
        else:
            passed = True
            close_and_print(workspace, month.date(), override, console)
    if not passed:
        raise typer.Exit(1)


@app.command()
@readable
def verify(context: typer.Context, target: Target = None) -> None:
    """Prove that closed months are what they were: the chain of hashes, and every copy of their lines."""
    from orchestration.ledger.printing import print_verification

    if not print_verification(_on(context, target), console):
        raise typer.Exit(1)


@app.command()
@readable
def publish(
    context: typer.Context,
    tableau: Annotated[
        bool, typer.Option("--tableau", help="Also upload to the Tableau server of APPORTION_TABLEAU_SERVER.")
    ] = False,
) -> None:
    """Write everything that readers get to published/: marts, page, statements, journals, Tableau extracts."""
    from orchestration.publish import publish_everything
    from orchestration.publish.tableau.settings import TableauSettings
    from orchestration.publish.tableau.upload import upload
    from orchestration.warehouse.target import require_duckdb

    workspace: Workspace = context.obj
    require_duckdb(workspace, "publishing")
    # A variable that is missing is said before minutes are spent.
    settings = TableauSettings.from_environment() if tableau else None
    with workspace.writing(), console.status("publishing") as status:
        said = publish_everything(workspace, status.update)
    print_published(said)
    if settings:
        with console.status("uploading to Tableau"):
            uploaded = upload(workspace, settings)
        for one in uploaded:
            sent = f"{one.bytes_sent:,} bytes sent" if one.bytes_sent else "was there already"
            console.print(f"  Tableau: {one.name} in {one.project}, {sent}", soft_wrap=True)


@app.command()
@readable
def focus(
    context: typer.Context,
    start: From,
    end: To,
    form: Annotated[list[str] | None, typer.Option("--format", help="csv or parquet; both if none is given.")] = None,
) -> None:
    """Write what these days cost each team and project as FOCUS 1.3 rows: published/focus/."""
    from orchestration.dbt import Window
    from orchestration.publish.focus import FORMATS, write_focus

    with console.status("sharing out every bill line"):
        written = write_focus(context.obj, Window(start.date(), end.date()), tuple(form or FORMATS))
    for currency, (billed, cost) in sorted(written.totals.items()):
        console.print(f"{currency}  billed {billed:,.9f}, effective {cost:,.9f}")
    for file in written.files:
        console.print(f"{written.rows:,} rows → {file}", soft_wrap=True)


@app.command()
@readable
def grants(
    context: typer.Context,
    apply: Annotated[
        bool, typer.Option("--apply", help="On BigQuery: execute the statements, not only print them.")
    ] = False,
    target: Target = None,
) -> None:
    """Let each team see its own rows and nobody else's: a file per team, or row access policies on BigQuery."""
    from orchestration.grants import grants as grant

    grant(_on(context, target), apply, console)


@app.command()
@readable
def estimate(
    context: typer.Context,
    start: From,
    end: To,
    price: Annotated[float, typer.Option(help="USD per TiB that BigQuery scans, on demand.")] = 6.25,
    as_json: AsJson = False,
) -> None:
    """Estimate how much BigQuery would scan for these days, model by model, and what that costs."""
    from decimal import Decimal

    from orchestration.dbt import Window
    from orchestration.estimate.report import show_estimate

    show_estimate(context.obj, Window(start.date(), end.date()), Decimal(str(price)), console, as_json)


@app.command()
@readable
def push(context: typer.Context) -> None:
    """Copy all that is landed here to BigQuery, and prove day by day that it arrived. Goes on where it was stopped."""
    from orchestration.warehouse.push import push as push_history
    from orchestration.warehouse.settings import BigQuerySettings

    workspace: Workspace = context.obj
    settings = BigQuerySettings.from_environment()
    with workspace.writing(), console.status("looking at what is there") as status:
        report = push_history(workspace.data, settings, say=status.update)
    console.print(
        f"{len(report.days):,} days in {settings.landing}: {len(report.loaded):,} loaded ({sum(report.rows.values()):,}"
        f" rows counted), {len(report.skipped):,} were there; row counts and sums of {len(report.tables)} tables agree"
    )
    if report.only_there:
        console.print(f"only in BigQuery, and left alone: {len(report.only_there)} days, from {report.only_there[0]}")


@app.command()
@readable
def ui(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1.")] = 3000,
    target: Target = None,
) -> None:
    """Open Dagster's web interface on this workspace: lineage, runs, backfills, checks."""
    from orchestration.runs import instance_of

    workspace = _on(context, target)
    with instance_of(workspace):
        environment = {
            **os.environ,
            **workspace.environment(),
            "DAGSTER_HOME": str(workspace.dagster_home),
            "PYTHONWARNINGS": "ignore",
        }
    console.print(f"Dagster is starting on http://127.0.0.1:{port} (Ctrl-C ends it)")
    arguments = ["dev", "-m", "orchestration.definitions", "-h", "127.0.0.1", "-p", str(port)]
    raise typer.Exit(subprocess.call([sys.executable, "-m", "dagster", *arguments], env=environment, cwd=PROJECT_ROOT))


@app.command()
@readable
def docs(context: typer.Context) -> None:
    """Build dbt's documentation of every table and column as one static page: data/docs/index.html."""
    import shutil

    from orchestration.dbt import invoke

    workspace: Workspace = context.obj
    with workspace.writing():
        result = invoke(workspace, ["--quiet", "docs", "generate", "--static"])
    if not result.success:
        raise ApportionError(f"dbt could not build the documentation: {result.exception}")
    page = workspace.data / "docs" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(workspace.dbt_target / "static_index.html", page)
    console.print(f"documentation → {page}")


@app.command(
    name="dbt",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
@readable
def dbt_command(context: typer.Context) -> None:
    """Run dbt on this workspace, warm: `apportion dbt build --select +int_node_hours --vars '{…}'`."""
    from orchestration.dbt import check_seeds, invoke, loads_seeds

    workspace: Workspace = context.obj
    with workspace.writing():
        if loads_seeds(context.args):
            check_seeds(workspace)
        result = invoke(workspace, context.args)
    if result.exception:
        raise ApportionError(f"dbt: {result.exception}", "`apportion dbt build …` takes what `dbt build …` takes")
    raise typer.Exit(0 if result.success else 1)


def _close_demo(workspace: Workspace) -> None:
    """The first month is closed, then its bill is corrected, and what that changes waits in the open month."""
    from orchestration.demo import CLOSED_MONTH, CORRECTED_DAYS, deliver_correction
    from orchestration.ledger.printing import close_and_print, print_open_true_ups, print_verification
    from orchestration.publish import publish_everything

    console.print(f"\nThe books of {CLOSED_MONTH:%Y-%m} are closed:")
    with console.status("closing"):
        close_and_print(workspace, CLOSED_MONTH, None, console)
    (correction,) = deliver_correction(workspace.data)
    console.print(f"\nThen the provider corrects two of its days ({correction.name}):", soft_wrap=True)
    _run(workspace, *CORRECTED_DAYS, show_summary=False)
    print_open_true_ups(workspace, console)
    print_verification(workspace, console)
    with workspace.writing(), console.status("publishing") as status:
        print_published(publish_everything(workspace, status.update))


def _simulate(workspace: Workspace, scenario: str, start: date, end: date) -> None:
    from orchestration.dbt import Window
    from orchestration.scenarios import print_deltas
    from orchestration.scenarios import simulate as work_out
    from orchestration.warehouse.target import require_duckdb

    require_duckdb(workspace, "a what-if")
    started = time.monotonic()
    with console.status(f"working out {scenario}"):
        schema = work_out(workspace, scenario, Window(start, end))
    console.print(f"worked out in {time.monotonic() - started:.0f} s; the books have not changed")
    print_deltas(workspace, schema, console)


def _run(
    workspace: Workspace, start: date, end: date, retroactive: str | None = None, *, show_summary: bool = True
) -> None:
    from orchestration import progress
    from orchestration.dbt import Window
    from orchestration.ledger.retroactive import RUN_TAG
    from orchestration.partitions import FIRST_DAY

    window = Window(start, end)
    if start < date.fromisoformat(FIRST_DAY):
        raise ApportionError(
            f"{start} is before {FIRST_DAY}, the first day that can be run",
            "set APPORTION_FIRST_DAY to an earlier day",
        )
    started = time.monotonic()
    with console.status("starting") as status:
        from orchestration.runs import run_pipeline
        from orchestration.summary import print_summary

        progress.listen(status.update)
        run_pipeline(workspace, window, {RUN_TAG: retroactive} if retroactive else {})
    console.print(f"ran {window.days} days in {time.monotonic() - started:.0f} s")
    if show_summary:
        print_summary(workspace, window, console)


def print_published(said: dict[str, dict[str, object]]) -> None:
    """Where everything lies."""
    for what, facts in said.items():
        counts = ", ".join(f"{count:,} {name}" for name, count in facts.items() if name not in ("path", "bytes"))
        console.print(f"  {what:<10} {counts} → {facts['path']}", soft_wrap=True)


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())
