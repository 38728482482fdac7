"""Check conditions in files, and estimate their load from samples (``validate``)."""

from __future__ import annotations

import json
import math
import sys
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from cli.client.plan import show_plan
from cli.client.problems import excerpts_of
from cli.errors import UsageError
from correlation.printable import printable
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from cli.client.resources import ResourceFile
    from cli.client.rest import ServiceClient

Document = dict[str, Any]
_PATH = "/v1/conditions:validate"
_MOMENTS = ("first_time", "last_time")


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """Options of ``validate``.

    Parameters
    ----------
    samples
        File with one record per line for each stream; ``-`` is standard input.
    from_topic
        Whether the newest records of the topics are the sample.
    records
        Max number of records of a stream: the last of a file, or the newest of a topic.
    rates
        Events per second by stream.
    keys
        Number of join keys; None: the service's default.
    """

    samples: Mapping[str, Path]
    from_topic: bool
    records: int
    rates: Mapping[str, Decimal]
    keys: float | None


def validate_conditions(
    service: ServiceClient, resources: Iterable[ResourceFile], options: ValidateOptions
) -> Iterator[tuple[str, Document]]:
    """Yield the name of each condition in files, and the answer of the service.

    Parameters
    ----------
    service
        The service.
    resources
        Resources of the files; only conditions are validated.
    options
        Rates and samples.

    Raises
    ------
    UsageError
        The files contain no condition, a sample cannot be read, or no condition reads its stream.
    ServiceError
        The service does not answer, or rejects the request.
    """
    conditions = [it for it in resources if it.kind == "condition"]
    if not conditions:
        raise UsageError("the files contain no condition; validate checks conditions only")
    read = frozenset().union(*(it.streams for it in conditions))
    for option, streams in (("--sample", options.samples), ("--rate", options.rates)):
        for name in streams:
            if name not in read:
                raise UsageError(
                    f"{option}: no condition in the files reads the stream {name}; "
                    f"use {', '.join(sorted(read))}"
                )
    samples = {name: _read_sample(it, options.records) for name, it in options.samples.items()}
    path = _PATH
    if options.from_topic:
        path += f"?sample_from_topic=true&sample_records={options.records}"
    for condition in conditions:
        request: Document = {"condition": condition.document}
        sample = {name: it for name, it in samples.items() if name in condition.streams}
        rates = {name: it for name, it in options.rates.items() if name in condition.streams}
        if sample:
            request["sample"] = sample
        if rates:
            request["rates"] = rates
        if options.keys is not None:
            request["keys"] = options.keys
        yield condition.name, service.post(path, request)


def read_assignments(option: str, given: Iterable[str]) -> dict[str, str]:
    """Return the values of an option STREAM=VALUE by stream.

    Raises
    ------
    UsageError
        A value has another form, or a stream has several.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option}: {text!r} is not valid; write STREAM=VALUE")
        if name in found:
            raise UsageError(f"{option}: {name} occurs several times; write it once")
        found[name] = value
    return found


def read_rates(given: Iterable[str]) -> dict[str, Decimal]:
    """Return the rates of the option `--rate`, in events per second.

    Raises
    ------
    UsageError
        A rate is not a number.
    """
    rates = {}
    for name, text in read_assignments("--rate", given).items():
        try:
            rate = Decimal(text)
        except ArithmeticError:
            rate = Decimal("NaN")
        if not math.isfinite(rate):
            raise UsageError(f"--rate: {name}={text}: must be a number of events per second")
        rates[name] = rate
    return rates


def _read_sample(path: Path, most: int) -> list[object]:
    """Read the last records of a file."""
    where = "standard input" if str(path) == "-" else str(path)
    try:
        if str(path) == "-":
            lines = _last_lines(sys.stdin.buffer, most)
        else:
            with path.open("rb") as file:
                lines = _last_lines(file, most)
    except OSError as error:
        raise UsageError(f"--sample: {where} cannot be read: {error.strerror}") from error
    if not lines:
        raise UsageError(f"--sample: {where} has no records; write one JSON document per line")
    return [_parse(line, f"{where}, line {number}") for number, line in lines]


def _last_lines(file: Iterable[bytes], most: int) -> Sequence[tuple[int, bytes]]:
    """Return the last lines that are not empty, with their numbers."""
    return deque(((at, it) for at, it in enumerate(file, start=1) if it.strip()), most)


def _parse(line: bytes, place: str) -> object:
    try:
        return json.loads(line, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise UsageError(f"--sample: {place}: must be one JSON document: {error}") from error


def show_validation(name: str, answer: Mapping[str, Any], console: Console) -> None:
    """Print the answer for a condition.

    Parameters
    ----------
    name
        Name of the condition.
    answer
        Response of the service.
    console
        Console to print to.
    """
    if not answer["valid"]:
        console.print(f"[bold]{escape(name)}[/] [red]is not valid[/]", soft_wrap=True)
        for it in answer["errors"]:
            sentence = f"{it['field'] or 'document'}: {it['problem']}; {it['remedy']}"
            console.print(printable(sentence), markup=False, soft_wrap=True)
        for excerpt in excerpts_of(answer["errors"]):
            console.print(excerpt, markup=False, soft_wrap=True)
        return
    sample = dict(answer["sample"] or {})
    derived = dict(answer["derived"])
    found = [*derived.pop("warnings", ()), *sample.pop("warnings", ())]
    warnings = [f"warning: {it}" for it in found]
    if sample:
        sample["streams"] = {
            stream: {field: _shown(field, it) for field, it in facts.items()}
            for stream, facts in sample["streams"].items()
        }
    show_plan(name, {"sentences": ["valid", *warnings], **derived, **sample}, console)


def _shown(field: str, value: object) -> object:
    return describe_moment(value) if field in _MOMENTS and isinstance(value, int) else value
