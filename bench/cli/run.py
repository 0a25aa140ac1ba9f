"""`icebench run`: measure an experiment, or tables of one's own, and say what came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.naming import catalog_name, named_table, split_name, table_options
from icebench.bench.cli.progress import RunProgress
from icebench.bench.errors import ConfigError
from icebench.bench.execution.interruption import Interruption, say_on_terminal
from icebench.bench.execution.pace import BUILD
from icebench.bench.experiment import Experiment, load_experiment, parse_values
from icebench.bench.report.wrapping import Hanging
from icebench.bench.runs.check_filters import check_filters
from icebench.bench.runs.estimate import Estimate, estimate
from icebench.engine.errors import without_secrets

if TYPE_CHECKING:
    from icebench.bench.runs.run import Finished, Surroundings

_OF_TABLES = ("filters", "queries", "relocate", "catalog", "warehouse", "catalog_name")
CACHE = Path("datasets/cache")
FEWEST, MOST = 1, 1000
LONG_SECONDS, LARGE_BYTES = 60 * 60, 10e9
"""Beyond these, a run on a terminal asks first."""
VERDICT_LINES = 19
"""With what is said of files after it, the last screen has 25."""
TABLE_ENGINES = ("icebench", "icebench-spark", "pyiceberg", "iceberg-java")
QUERY_ENGINES = ("icebench", "icebench-spark", "iceberg-java", "duckdb")


@click.command("run")
@click.argument("experiment", required=False, metavar="[EXPERIMENT.toml]")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="PATH",
    help="Measure this table instead: its directory or a metadata.json. Repeatable: tables are compared. With "
    "--queries: [NAME=]PATH, the name that queries call it, by default its own.",
)
@table_options
@click.option("--filter", "filters", multiple=True, metavar="SQL", help="With --table: a filter to plan. Repeatable.")
@click.option("--queries", metavar="FILE.sql", help="With --table: queries over all of them, in DuckDB's SQL.")
@click.option("--streams", type=click.IntRange(0), help="Also ask all queries in this many streams at once.")
@click.option("--relocate", multiple=True, metavar="OLD=NEW", help="With --table: where its files are now. Repeatable.")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), help="Another scale factor of the workload.")
@click.option("--repetitions", type=click.IntRange(FEWEST, MOST), help="How often each timed case runs.")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only this layout, engine, measurement or action. Repeatable."
)
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="Go on with this interrupted run.")
@click.option("--dry-run", is_flag=True, help="Say what it will take (cases, minutes, gigabytes), and stop.")
@click.option("--yes", is_flag=True, help="Do not ask before a long run.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE.html", help="Where to write the report.")
@pass_context
def run(
    context: Context,
    *,
    experiment: str | None,
    tables: tuple[str, ...],
    catalog: str | None,
    warehouse: str | None,
    filters: tuple[str, ...],
    queries: str | None,
    streams: int | None,
    relocate: tuple[str, ...],
    scale: float | None,
    repetitions: int | None,
    only: tuple[str, ...],
    resume: Path | None,
    dry_run: bool,
    yes: bool,
    output: Path | None,
) -> int:
    """Measure, print the verdict, and write the report; exit code 1 when engines fail or disagree, or when nothing
    could be measured.

    EXPERIMENT is a TOML file or the name of one that comes with the project ('icebench list' shows them).
    """
    options = {
        "--table": tables,
        "--catalog": catalog and without_secrets(catalog),
        "--warehouse": warehouse and without_secrets(warehouse),
        "--catalog-name": catalog_name(),
        "--filter": filters,
        "--queries": queries,
        "--streams": streams,
        "--relocate": relocate,
        "--scale": scale,
        "--repetitions": repetitions,
        "--only": only,
    }
    asked = arguments(experiment, options)
    if resume is not None:
        if asked != ("run",) or dry_run:
            raise click.UsageError("--resume goes on with a run as it was asked for, and takes nothing else")
        return _conclude(context, _resumed(context, resume), output)
    if tables:
        refuse_options("experiment", "scale", because="goes without --table, which measures a table as it is")
        if catalog is None:
            refuse_options("warehouse", "catalog_name", because="needs --catalog")
        chosen = _of_options(
            tables, catalog=catalog, warehouse=warehouse, filters=filters, queries=queries, relocate=relocate
        )
    else:
        refuse_options(*_OF_TABLES, because="needs --table")
        chosen = load_experiment(experiment or "default")
    chosen = chosen.adjusted(scale=scale, repetitions=repetitions, streams=streams, only=only)
    check_filters(chosen)
    from icebench.bench.runs.run import run_experiment  # local import: PySpark, which a wrong filter need not wait for

    needed = estimate(chosen, context.places.all_runs())
    said = chosen.description if scale is None else f"{chosen.description}; this time at scale {scale:g}"
    for line in (f"{chosen.name}: {said}", str(needed)):
        context.terminal.err.print(Hanging("", line), crop=False)
    if dry_run:
        return 0
    confirm(context, needed, yes=yes)
    with _stoppable(context, asked) as where:
        finished = run_experiment(chosen, where=where)
    if tables and not (filters or queries):
        _say_filters(context, finished)
    return _conclude(context, finished, output)


def _resumed(context: Context, run: Path) -> Finished:
    # local import: PySpark, which the other commands need not wait for
    from icebench.bench.cli.report import find_run
    from icebench.bench.runs.run import resume_run

    with _stoppable(context, ()) as where:
        return resume_run(find_run(context, run), where=where)


def _of_options(
    tables: Sequence[str],
    *,
    catalog: str | None,
    warehouse: str | None,
    filters: Sequence[str],
    queries: str | None,
    relocate: Sequence[str],
) -> Experiment:
    if filters and queries:
        raise click.UsageError("--filter is of scans, --queries of SQL: give one of them")
    named = [split_name(text) if queries else ("", text) for text in tables]
    found = [{"path": path} if catalog is None else _in_catalog(catalog, path, warehouse) for _, path in named]
    if queries is None:
        return of_tables(found, filters, relocate, names=[path for _, path in named])
    return of_queries(dict(zip(_names(named), found, strict=True)), queries, relocate)


def _say_filters(context: Context, finished: Finished) -> None:
    named = {each.case.filter: each.evidence.detail.get("filter") for each in finished.run.measured}
    for name, text in named.items():
        if text:
            context.terminal.err.print(Hanging("filter chosen: ", f"{name}: {text}"), crop=False)


def confirm(context: Context, needed: Estimate, *, yes: bool) -> None:
    """Ask before a run that takes long or much; where nobody can answer, as in CI, it runs.

    Raises:
        click.Abort: The answer is no.
    """
    much = needed.seconds > LONG_SECONDS or (needed.size or 0) > LARGE_BYTES
    if much and not yes and context.terminal.is_interactive:
        click.confirm("Run it?", abort=True, err=True)


def _in_catalog(catalog: str, name: str, warehouse: str | None) -> dict[str, str]:
    """A table of a catalog as a definition has it: all engines are given one metadata file.

    Of the catalog there is no more than what each process of the run asks it by, and nothing where files open without.

    Raises:
        EngineError: There is no such table, or nothing that opens its files elsewhere.
    """
    opened, table = named_table(catalog, name, warehouse)
    path = {"path": table.metadata_location}
    if not opened.storage_options(name):
        return path
    more = {"warehouse": warehouse, "catalog_name": opened.name if opened.name != "default" else None}
    return path | {"catalog": catalog, "table": name} | {key: value for key, value in more.items() if value}


def of_tables(
    tables: Sequence[Mapping[str, str]],
    filters: Sequence[str] = (),
    relocate: Sequence[str] = (),
    *,
    names: Sequence[str] = (),
) -> Experiment:
    """The experiment that measures tables, as the command line names them.

    Args:
        tables: Of each, the keys of a definition.
        filters: SQL.
        relocate: OLD=NEW, two prefixes of locations.
        names: What the tables are called; by default their names in a catalog, or their places.

    Raises:
        ConfigError: `relocate` is not OLD=NEW.
    """
    names = names or [each.get("table", each["path"]) for each in tables]
    moved = dict(_pair(text) for text in relocate)
    values: dict[str, Any] = {
        "name": Path(names[0]).name.removesuffix(".metadata.json") or "table",
        "description": f"Tables {', '.join(names)}",
        "engines": list(TABLE_ENGINES),
        "workload": [{"kind": "table", **each, "relocate": moved} for each in tables],
        "filters": {text: text for text in filters},
        "spark": {"master": "local[*]"},
    }
    return parse_values(values)


def of_queries(tables: Mapping[str, Mapping[str, str]], file: str, relocate: Sequence[str] = ()) -> Experiment:
    """The experiment that measures queries over tables, as the command line names them.

    Args:
        tables: By the name in queries, the keys of a definition of each.
        file: SQL.
        relocate: OLD=NEW, two prefixes of locations.

    Raises:
        ConfigError: `relocate` is not OLD=NEW, or the file cannot be read.
    """
    moved = dict(_pair(text) for text in relocate)
    values: dict[str, Any] = {
        "name": Path(file).stem,
        "description": f"Queries of {file} over {', '.join(tables)}",
        "engines": list(QUERY_ENGINES),
        "workload": {
            "kind": "tables",
            "table": [{"name": name, **each, "relocate": moved} for name, each in tables.items()],
        },
        "queries": {"files": [str(Path(file).resolve())]},
        "spark": {"master": "local[*]"},
    }
    return parse_values(values)


def _names(named: Sequence[tuple[str, str]]) -> list[str]:
    """The name of each table in queries: that which is given, or the last part of its own."""
    found = [name or own_name(path) for name, path in named]
    if twice := next((name for name in found if [each.lower() for each in found].count(name.lower()) > 1), None):
        raise ConfigError(f"two tables are {twice!r}: name one with NAME=PATH", path="--table")
    return found


def own_name(path: str) -> str:
    """The last part of a table's name, given as its directory, a metadata file in it, or a name in a catalog."""
    parts = [part for part in path.split("/") if part]
    if not parts:
        raise ConfigError(f"{path!r} names no table", path="--table")
    if parts[-1].endswith((".metadata.json", ".metadata.json.gz")) and len(parts) > 2:
        parts = parts[:-2]
    return parts[-1].rpartition(".")[2]


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise ConfigError(f"{text!r} is not OLD=NEW, two prefixes of locations", path="--relocate")
    return old, new


def arguments(experiment: str | None, options: Mapping[str, object]) -> tuple[str, ...]:
    """What was asked for, as it could be typed again; options that were not given are left out."""
    words = ["run", *([experiment] if experiment else [])]
    for name, value in options.items():
        for one in value if isinstance(value, tuple) else () if value is None else (value,):
            words += [name, f"{one:g}" if isinstance(one, float) else str(one)]
    return tuple(words)


@contextmanager
def _stoppable(context: Context, asked: tuple[str, ...]) -> Iterator[Surroundings]:
    """Context of a run, which Ctrl-C stops after a sample; raises Stopped."""
    # local import: as above
    from icebench.bench.runs.further_process import launch
    from icebench.bench.runs.run import Surroundings

    # Tables hold absolute paths, and some engines take no others.
    cache = CACHE.resolve()
    interruption = Interruption(say=say_on_terminal)
    with interruption.listening(), RunProgress(context.terminal.err) as progress:
        yield Surroundings(
            cache=cache,
            results=context.places.runs,
            progress=progress,
            launch=partial(launch, cache=cache, interruption=interruption),
            command=asked,
            interruption=interruption,
        )


def _conclude(context: Context, result: Finished, output: Path | None) -> int:
    """Print the verdict, and of a run that measured nothing the reasons; write the report, and say where both are."""
    # local import: reports take a second of SciPy and matplotlib, which a wrong argument need not wait for
    from icebench.bench.cli.report import print_verdict, write_report
    from icebench.bench.report.build import build_report
    from icebench.bench.report.kept_runs import with_spread

    run = with_spread(result.run, context.places.all_runs())
    made = build_report(run, results_file=str(result.path))
    print_verdict(context, made, lines=VERDICT_LINES)
    # Building tables is no answer to what was asked.
    is_measured = any(each.case.measurement != BUILD for each in run.measured)
    for remark in () if is_measured else made.remarks:
        context.terminal.out.print(Hanging("", remark.text), crop=False)
    page = write_report(context, made, result.path, output)
    for line in ("", f"results: {result.path}", f"report:  {page}", made.answer):
        context.terminal.out.print(Hanging("", line), crop=False)
    return 1 if result.failed or not is_measured else 0
