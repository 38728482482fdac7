"""Explain why events are reported or not (``explain``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from cli.client.lines import write_json_line
from cli.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

_EVENT = "a file with one JSON document, - for standard input, JSON, or an id"


def explain(
    condition: Annotated[str, typer.Argument(help="Name of the condition.")],
    *,
    a: Annotated[
        str | None, typer.Option("--a", help="Same as --event a=…", metavar="FILE|JSON|ID")
    ] = None,
    b: Annotated[
        str | None, typer.Option("--b", help="Same as --event b=…", metavar="FILE|JSON|ID")
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Event of a role of the condition: {_EVENT}. Repeatable. The error of an unknown "
            "role lists the roles of the condition.",
            metavar="ROLE=FILE|JSON|ID",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Search ids in records from this time on: µs or RFC 3339."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Search ids in records up to this time.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="URL of the service; default: COINCIDE_URL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Explain why events are reported or not; exit code 1 if they do not satisfy the condition."""
    # Imported here: slow to import, and --help does not need it.
    from cli.client.explain import read_request, show_explanation  # noqa: PLC0415
    from cli.client.near_names import suggesting  # noqa: PLC0415
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    pair = {role: text for role, text in (("a", a), ("b", b)) if text is not None}
    request = read_request(pair, since, until, _read_events(event or ()))
    with (
        ServiceClient.of(read_settings(url=url)) as service,
        suggesting(service, {("condition", condition)}),
    ):
        answer = service.post(f"/v1/conditions/{quote(condition, safe='')}/explain", request)
    if as_json:
        write_json_line(answer)
    else:
        show_explanation(answer, Console(highlight=False, emoji=False))
    if answer["verdict"] != "satisfied":
        raise typer.Exit(1)


def _read_events(given: Iterable[str]) -> dict[str, str]:
    """Return the events of the options `--event` by role."""
    events: dict[str, str] = {}
    for text in given:
        role, equals, event = text.partition("=")
        problem = ""
        if not equals:
            problem = f"{text!r} is not valid; write ROLE=EVENT"
        elif role in events:
            problem = f"{role} has several events; write one --event for each role"
        if problem:
            raise typer.BadParameter(problem, param_hint="--event")
        events[role] = event
    return events
