"""The commands ``coincide query``: event queries in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cli.client.lines import counted, write_json_line
from cli.flags import FlagsCommand, FlagsGroup
from correlation.printable import printable

if TYPE_CHECKING:
    from correlation.errors import InvalidFieldError
    from correlation.event_query.query import Query

query_app = typer.Typer(
    cls=FlagsGroup,
    help="Event queries in files.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)


@query_app.callback()
def _group() -> None:
    """Keep `check` a command of its own: typer would merge a single command with its group."""


@query_app.command(cls=FlagsCommand)
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files with the text or the JSON form of a query; - is standard input.",
        ),
    ],
    *,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write each query, or its errors, as one line of JSON."),
    ] = False,
) -> None:
    """Check event queries in files; exit code 1 if one is not valid.

    A query that would need unbounded memory on any streams is not valid. The queries are not
    registered, and their streams are not looked up.
    """
    console = Console(highlight=False, soft_wrap=True)
    valid = [_check_file(file, console, as_json=as_json) for file in files]
    if not all(valid):
        raise typer.Exit(1)


def _check_file(file: str, console: Console, *, as_json: bool) -> bool:
    """Check a file, and write its query, or its errors."""
    # Imported here: slow to import, and --help does not need it.
    from cli.client.query_files import (  # noqa: PLC0415
        find_dependence,
        read_query_file,
        refuse_unbounded_on_any_streams,
    )
    from correlation.errors import InvalidFieldError  # noqa: PLC0415
    from correlation.event_query.language.documents import query_to_document  # noqa: PLC0415

    name = "<stdin>" if file == "-" else file
    try:
        query = read_query_file(file)
        refuse_unbounded_on_any_streams(query)
    except InvalidFieldError as error:
        if as_json:
            write_json_line({"errors": [_error_document(name, it) for it in error.problems]})
        else:
            for problem in error.problems:
                _show_problem(console, name, problem, "error", "bold red")
        return False
    if as_json:
        write_json_line(query_to_document(query))
        # Standard output has one line per file.
        console = Console(highlight=False, soft_wrap=True, stderr=True)
    else:
        console.print(printable(f"{name}: valid; {_summary(query)}"), markup=False)
    dependence = find_dependence(query)
    for problem in () if dependence is None else dependence.problems:
        label = "refused if its events last and have no max_length"
        _show_problem(console, name, problem, label, "bold yellow")
    return True


def _error_document(file: str, error: InvalidFieldError) -> dict[str, Any]:
    problem, place = _split(error)
    document = {"file": file, **place, "problem": problem, "remedy": error.remedy}
    if error.place is not None:
        document |= {
            "found": error.place.found,
            "expected": list(error.place.expected),
            "excerpt": error.place.excerpt,
        }
    return document


def _split(error: InvalidFieldError) -> tuple[str, dict[str, Any]]:
    """Return the problem of an error without its place, and the place: line and column, or path."""
    from correlation.event_query.language.errors import QueryError  # noqa: PLC0415 - see above

    if isinstance(error, QueryError):
        return error.plain_problem, {"line": error.line, "column": error.column}
    return error.problem, {"path": error.field.removeprefix("query.")}


def _show_problem(
    console: Console, file: str, error: InvalidFieldError, label: str, style: str
) -> None:
    problem, place = _split(error)
    at = ":".join(map(str, [file, *place.values()]))
    console.print(printable(f"{at}: "), markup=False, end="")
    console.print(f"{label}: ", style=style, end="")
    console.print(printable(f"{problem}; {error.remedy}"), markup=False)
    if error.place is not None:
        console.print(error.place.excerpt, markup=False)


def _summary(query: Query) -> str:
    summary = f"{query.type} from {counted(len(query.positive), 'positive event')}"
    negated = len(query.negated)
    return f"{summary} and {counted(negated, 'negated event')}" if negated else summary
