"""`coincide tail` on results whose ids contain markup and control characters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from correlation.printable import printable
from tests.support.command import COMMAND, coincide
from tests.support.kafka import produce
from tests.support.results import NOON_US, result
from tests.support.terminal import in_terminal

if TYPE_CHECKING:
    from tests.rest.running import Service

pytestmark = pytest.mark.kafka
# Markup of rich, a colour and a cleared screen, control characters of one byte and of two,
# characters that reverse the direction of writing, and one outside of the basic plane.
HOSTILE = "[bold]a[/] :smile: \x1b[31m\x1b[2J\x07\x7f\x9b2J\u202egnp.exe\u2066\u061c\U000e0041\n"
# Wider than every line, so that the screen wraps none.
WIDTH, HEIGHT = 2_000, 10


@pytest.fixture(scope="module")
def stored(service: Service) -> dict[str, Any]:
    """Return an alarm with hostile ids, which is in Kafka."""

    def event(stream: str) -> dict[str, Any]:
        times = {"earliest": NOON_US, "latest": NOON_US}
        return {"id": HOSTILE, "stream": stream, "key": HOSTILE, **times}

    alarm = result(
        1,
        version=1,
        kind="mutual_deadline",
        threshold=0.6,
        decided_by="probe",
        late=False,
        a=event("mic"),
        b=event("geo"),
    )
    produce(service.settings.bootstrap, service.settings.topics.alarms, [alarm])
    found: dict[str, Any] = json.loads(alarm.value or b"")
    return found


def environment(service: Service) -> dict[str, str]:
    settings = service.settings
    return {"COINCIDE_BOOTSTRAP": settings.bootstrap, "COINCIDE_PREFIX": settings.prefix}


ARGUMENTS = ("tail", "--from-beginning", "--count", "1")


def shown_in_terminal(service: Service, *more: str) -> str:
    """Return the line of a terminal; its screen fails at each unprintable character."""
    command = [*COMMAND, *ARGUMENTS, *more]
    with in_terminal(command, environment(service), WIDTH, HEIGHT) as terminal:
        assert terminal.wait_for_end() == 0
        line, rest = terminal.screen.lines
        assert rest == ""
        return line


def test_ids_of_an_alarm_are_written_as_text(service: Service, stored: dict[str, Any]) -> None:
    done = coincide(*ARGUMENTS, environment=environment(service))
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    for stream in ("mic", "geo"):
        assert f"{stream}:{printable(stored['a']['id'])}" in line
    assert line.isprintable()
    assert shown_in_terminal(service) == line


def test_json_of_an_alarm_is_escaped_in_a_terminal_only(
    service: Service, stored: dict[str, Any]
) -> None:
    done = coincide(*ARGUMENTS, "--json", environment=environment(service))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == stored
    assert "\u202egnp.exe" in done.stdout
    line = shown_in_terminal(service, "--json")
    assert json.loads(line) == stored
    assert r"\u202egnp.exe" in line
