"""Explain a pair of events (``explain``): the request and the display of the response."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson
from rich.markup import escape
from rich.table import Table

from cli.errors import UsageError
from correlation.kinds import KINDS
from correlation.printable import printable
from correlation.resources.attributes import describe_attributes
from correlation.resources.durations import describe_duration
from correlation.resources.times import describe_moment
from correlation.resources.tokens import describe_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from correlation.drawing import Line

Document = dict[str, Any]
_STDIN = "-"
_MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[dim]·[/]"}


def read_request(
    pair: Mapping[str, str],
    since: str | None,
    until: str | None,
    events: Mapping[str, str] = MappingProxyType({}),
) -> Document:
    """Build the request from the arguments of the command.

    Parameters
    ----------
    pair
        Events that are fields of the request, by role, each a file with one JSON document, ``-``
        for standard input, JSON, or an id.
    since, until
        Range of Kafka timestamps in which ids are looked up.
    events
        Events of the field ``events`` by role, in the same form; the service takes the events of
        every kind there.

    Raises
    ------
    UsageError
        A file cannot be read or is not one JSON object.
    """
    if [*pair.values(), *events.values()].count(_STDIN) > 1:
        raise UsageError(
            "only one event can be read from standard input; use a file for the others"
        )
    request: Document = {role: _read_event(text, f"event {role}") for role, text in pair.items()}
    if events:
        request["events"] = {
            role: _read_event(text, f"event {role}") for role, text in events.items()
        }
    for name, moment in (("since", since), ("until", until)):
        if moment is not None:
            request[name] = int(moment) if moment.isascii() and moment.isdecimal() else moment
    return request


def _read_event(text: str, option: str) -> Document:
    if text == _STDIN:
        return _parse(sys.stdin.buffer.read(), f"{option}, standard input,")
    if text.lstrip().startswith("{"):
        return _parse(text.encode(), option)
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        return {"id": text}
    try:
        return _parse(Path(text).read_bytes(), f"{option}, file {text},")
    except OSError as error:
        raise UsageError(f"{option}: {text} cannot be read: {error.strerror}") from error


def _parse(content: bytes, place: str) -> Document:
    try:
        orjson.loads(content)
        found = json.loads(content, parse_float=Decimal, parse_int=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise UsageError(f"{place} must be one JSON document: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{place} must be a JSON object")
    return found


def show_explanation(answer: Mapping[str, Any], console: Console) -> None:
    """Print an explanation in a readable form.

    Parameters
    ----------
    answer
        Response of the service.
    console
        Console to print to.
    """
    satisfied = answer["verdict"] == "satisfied"
    verdict = "[bold green]SATISFIED[/]" if satisfied else "[bold red]NOT SATISFIED[/]"
    name = f"[bold]{_plain(answer['condition'])}[/] version {answer['version']}, "
    console.print(f"{verdict}  {name}{_plain(answer['kind'])}")
    console.print(_plain(answer["explanation"]), end="\n\n")
    console.print(_steps_table(answer))
    console.print()
    events = answer.get("events") or {role: answer[role] for role in answer["roles"]}
    if answer.get("events") is None:
        for role, event in events.items():
            for line in _describe_event(role.upper(), event):
                console.print(printable(line), markup=False, soft_wrap=True)
    else:
        console.print(_events_table(events))
    kind = KINDS.get(answer["kind"])
    if kind is not None:
        _print_lines(kind.draw_explanation(answer), console)
    for note in answer["notes"]:
        console.print(f"[yellow]note:[/] {_plain(note)}")


def _plain(text: str) -> str:
    """Return a string that others wrote so that it is shown as it is: no markup, no codes."""
    return escape(printable(text))


def _print_lines(lines: Sequence[Line], console: Console) -> None:
    """Print the lines that a kind draws; only sentences are wrapped."""
    if lines and lines[0].style == "drawing":
        console.print()
    for text, style in lines:
        muted = "dim" if style == "legend" else None
        shown = printable(text)
        console.print(shown, markup=False, style=muted, soft_wrap=style != "sentence")


def _steps_table(answer: Mapping[str, Any]) -> Table:
    """Return the table of steps, without a detail that repeats the explanation."""
    table = Table.grid(padding=(0, 1))
    kind = KINDS.get(answer["kind"])
    titles = {} if kind is None else {it.name: it.title or it.name for it in kind.steps}
    for step in answer["steps"]:
        detail = step["detail"] if step["detail"] != answer["explanation"] else None
        name = titles.get(step["step"], step["step"])
        table.add_row(_MARKS[step["passed"]], _plain(name), _plain(detail or ""))
    return table


def _events_table(events: Mapping[str, Any]) -> Table:
    """Return the table of the given events, one row for each."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    with_keys = any(event.get("key") for event in events.values())
    columns = ["event", "stream", "id", *(["key"] if with_keys else []), "time"]
    columns += [
        name
        for name in ("attributes", "tokens")
        if any(event.get(name) for event in events.values())
    ]
    for column in columns:
        table.add_column(column, overflow="fold")
    for role, event in events.items():
        cells = {
            "event": role,
            "stream": event["stream"],
            "id": event["id"] or "no id",
            "key": event.get("key") or "",
            "time": _describe_time(event),
            "attributes": describe_attributes(event.get("attributes") or {}),
            "tokens": _describe_tokens(event),
        }
        table.add_row(*(_plain(str(cells[column])) for column in columns))
    return table


def _describe_tokens(event: Mapping[str, Any]) -> str:
    tokens = event.get("tokens")
    return "" if tokens is None else describe_tokens(tokens)


def _describe_time(event: Mapping[str, Any]) -> str:
    span = _span(event)
    if span is None:
        return f"{event.get('reason') or 'not an event'}: {event.get('detail')}"
    first, last = map(describe_moment, span)
    return first if first == last else f"{first} … {last}"


def _span(event: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return begin and end of an event that lasts, or the first and last time of an instant."""
    names = ("begin", "end") if "begin" in event else ("earliest", "latest")
    first, last = map(event.get, names)
    return None if first is None or last is None else (first, last)


def _describe_event(role: str, event: Mapping[str, Any]) -> list[str]:
    key = f" @{event['key']}" if event.get("key") else ""
    place = event.get("place")
    where = f"  {place['topic']}-{place['partition']}@{place['offset']}" if place else ""
    # The id of a rejected record was not read.
    name = "" if event.get("reason") else f":{event['id'] or 'no id'}"
    head = f"{role}  {event['stream']}{name}{key}{where}"
    attributes = describe_attributes(event.get("attributes") or {})
    shown = [f"   {it}" for it in (attributes, _describe_tokens(event)) if it]
    if event.get("reason"):
        return [head, f"   {event['reason']}: {event['detail']}", *shown]
    span = _span(event)
    if span is None:
        return [head, f"   {event['detail']}", *shown]
    if span[0] == span[1]:
        return [head, f"   {describe_moment(span[0])}", *shown]
    interval = " … ".join(map(describe_moment, span))
    return [head, f"   {interval}  {describe_duration(event['length_us'])} long", *shown]
