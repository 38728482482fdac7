"""The commands ``coincide query``: event queries in text files."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cli.client.lines import counted, write_json_line
from cli.errors import UsageError
from cli.flags import FlagsCommand, FlagsGroup
from correlation.printable import printable

if TYPE_CHECKING:
    from correlation.event_query.language.errors import QueryError
    from correlation.event_query.query import Query

query_app = typer.Typer(
    cls=FlagsGroup,
    help="Event queries in text files.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)


@query_app.callback()
def _group() -> None:
    """Keep `check` a command of its own: typer would merge a single command with its group."""


@query_app.command(cls=FlagsCommand)
def check(
    file: Annotated[str, typer.Argument(help="Text file with a query; - is standard input.")],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the query, or its errors, as JSON.")
    ] = False,
) -> None:
    """Check the text of an event query; exit code 1 if it is not valid.

    Only the text is checked: the query is not registered, and its streams are not looked up.
    """
    # Imported here: slow to import, and --help does not need it.
    from correlation.event_query.language.documents import query_to_document  # noqa: PLC0415
    from correlation.event_query.language.errors import QueryError  # noqa: PLC0415

    name = "<stdin>" if file == "-" else file
    console = Console(highlight=False, soft_wrap=True)
    try:
        query = _read_query(file)
    except QueryError as error:
        problems = [it for it in error.problems if isinstance(it, QueryError)]
        if as_json:
            write_json_line({"errors": [_error_document(name, it) for it in problems]})
        else:
            for problem in problems:
                _show_error(console, name, problem)
        raise typer.Exit(1) from None
    if as_json:
        write_json_line(query_to_document(query))
    else:
        console.print(printable(f"{name}: valid; {_summary(query)}"), markup=False)


def _read_query(file: str) -> Query:
    """Read and parse a file.

    Raises
    ------
    UsageError
        The file cannot be read.
    QueryError
        The text is not valid.
    """
    from correlation.event_query.language.errors import QueryError  # noqa: PLC0415 - see `check`
    from correlation.event_query.language.limits import MAX_CHARACTERS  # noqa: PLC0415
    from correlation.event_query.language.parser import parse_query  # noqa: PLC0415

    # One character more than the limit, in UTF-8, and a byte order mark.
    limit = 4 * (MAX_CHARACTERS + 2)
    try:
        if file == "-":
            content = sys.stdin.buffer.read(limit)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(limit)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    content = content.removeprefix(BOM_UTF8)
    text = content.decode(errors="replace")
    if len(text) <= MAX_CHARACTERS:
        try:
            content.decode()
        except UnicodeDecodeError as error:
            before = content[: error.start].decode()
            problem = f"byte 0x{content[error.start]:02x} is not UTF-8"
            raise QueryError(text, len(before), problem, "save the file as UTF-8") from None
    return parse_query(text)


def _error_document(file: str, error: QueryError) -> dict[str, Any]:
    return {
        "file": file,
        "line": error.line,
        "column": error.column,
        "problem": error.plain_problem,
        "remedy": error.remedy,
        "found": error.found,
        "expected": list(error.expected),
        "excerpt": error.excerpt,
    }


def _show_error(console: Console, file: str, error: QueryError) -> None:
    console.print(printable(f"{file}:{error.line}:{error.column}: "), markup=False, end="")
    console.print("error: ", style="bold red", end="")
    console.print(printable(f"{error.plain_problem}; {error.remedy}"), markup=False)
    console.print(error.excerpt, markup=False)


def _summary(query: Query) -> str:
    summary = f"{query.type} from {counted(len(query.positive), 'positive event')}"
    negated = len(query.negated)
    return f"{summary} and {counted(negated, 'negated event')}" if negated else summary
