"""Generated requests to an application in this process (schemathesis).

An exception that the application does not handle has no answer: the client in this process gets the
exception, and schemathesis reports it apart from the answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit

from schemathesis.engine import events, from_schema


class Answered(NamedTuple):
    """A request that was answered; the content type is "" if the answer has none."""

    method: str
    path: str
    status: int
    content_type: str


class Generated(NamedTuple):
    """Result of generated requests.

    Attributes
    ----------
    answers
        Requests that were answered.
    errors
        Exceptions of the application and of schemathesis, and requests without an answer.
    failures
        Answers that differ from the description.
    """

    answers: list[Answered]
    errors: list[str]
    failures: list[str]


def send_generated(schema: Any) -> Generated:  # noqa: ANN401 - of schemathesis
    """Send the requests of all phases of a configured schema to its application."""
    found = Generated([], [], [])
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            for it in event.recorder.interactions.values():
                if it.response is None:
                    found.errors.append(f"{it.request.method} {it.request.uri}: no answer")
                else:
                    found.answers.append(_answered(it))
        elif isinstance(event, events.NonFatalError):
            found.errors.append(f"{event.label}: {event.value!r}")
        elif isinstance(event, events.FatalError):
            found.errors.append(repr(event.exception))
        elif isinstance(event, events.EngineFinished):
            found.failures.extend(
                f"{it.operation}: {it.title}: {it.message}" for it in event.failures
            )
    return found


def _answered(interaction: Any) -> Answered:  # noqa: ANN401 - of schemathesis
    request, response = interaction.request, interaction.response
    (content_type, *_) = response.headers.get("content-type", [""])
    path = urlsplit(request.uri).path
    return Answered(request.method, path, response.status_code, content_type)
