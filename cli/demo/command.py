"""The demo: real data through the whole local stack, checked against the reference."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.client.alarms import follow_alarms
from cli.client.events import EventSender, close_stream
from cli.client.lines import counted
from cli.client.rest import ServiceClient
from cli.demo.check import Pair, pair_of, reference_pairs, verify
from cli.demo.data import DemoEvent, load_events
from cli.demo.judge import Grounded, grounded_of, judge_grounded
from cli.demo.resources import CONDITIONS, GROUNDED, QUERIES, STREAMS
from cli.errors import BrokerError, ProcessError
from cli.stack.options import StackOptions
from cli.stack.stack import LocalStack, terminable
from correlation.engine.heartbeats import CLOSED

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from cli.settings import Settings

# Max time without progress, on any machine: until the conditions run, and between two alarms.
_STALLED_SECONDS = 600
_ASK_SECONDS = 0.5
_POLL_SECONDS = 0.2
_SHOWN_ALARMS = 6
_REFRESH_PER_SECOND = 4
_ALL_CONDITIONS = {**CONDITIONS, **QUERIES}


@dataclass(slots=True)
class _Run:
    """State of a run."""

    events: list[DemoEvent]
    begin: float = 0.0
    sent_at: dict[tuple[str, str], float] = field(default_factory=dict)
    sending_ended: float | None = None
    failure: Exception | None = None
    pairs: Counter[Pair] = field(default_factory=Counter)
    grounded: Counter[Grounded] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    last_alarm: float = 0.0
    last_condition: str = ""
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_SHOWN_ALARMS))


def run_demo(days: int, rate: float, console: Console) -> dict[str, Any]:
    """Start a separate stack, replay the data, show the alarms, and check them.

    Parameters
    ----------
    days
        Days of 2013 to replay.
    rate
        Events per second sent to Kafka.
    console
        Console for all output.

    Returns
    -------
    dict
        Statistics of the run: events, pairs, results of the query, hit ratio, rate, latency.

    Raises
    ------
    VerificationError
        The pairs differ from those of the reference, the results of the query from those of the
        judge, or one was reported twice.
    CliError
        A process of the stack did not start, or ended.
    """
    with console.status("reading flights and weather of New York, 2013"):
        run = _Run(load_events(days))
    counts = Counter(event.topic for event in run.events)
    console.print(
        f"New York's airports, {counted(days, 'day')} of 2013: {counts['departures']} departures "
        f"(recorded to the minute), {counts['takeoffs']} takeoffs of the delayed ones (at a later, "
        f"uncertain time), {counted(counts['bad-weather'], 'hour')} of bad weather, "
        f"{counts['cancellations']} cancelled flights of known aircraft",
        soft_wrap=True,
    )
    options = StackOptions(data=None, broker_port=0, service_port=0)
    with terminable(), LocalStack(options, console) as stack, ServiceClient(stack.url) as service:
        _register(service, stack, console)
        _replay(run, stack, service, rate, console)
        report = _report(run, service)
        streams = {name: service.get(f"/v1/streams/{name}")["document"] for name in STREAMS}
        conditions = {
            name: service.get(f"/v1/conditions/{name}")["document"] for name in CONDITIONS
        }
    if not console.is_terminal:
        # Without a terminal, the live view does not end its last line.
        console.print()
    _show_report(report, console)
    with console.status("comparing with the reference"):
        expected = reference_pairs(streams, conditions, run.events)
        grounded = judge_grounded(run.events)
    verify(run.pairs, expected, "the pairs differ from the reference")
    verify(run.grounded, grounded, f"the results of {GROUNDED} differ from the judge's")
    console.print(
        f"[bold green]✓ verified:[/] the {len(expected)} pairs are exactly those of the "
        f"reference, each once; the {counted(len(grounded), 'result')} of {GROUNDED} are exactly "
        "those of a direct comparison of cancellations and departures, each once",
        soft_wrap=True,
    )
    return {**report, "verified": True}


def _register(service: ServiceClient, stack: LocalStack, console: Console) -> None:
    """Register streams and conditions over REST and wait until the job follows them."""
    for name, document in STREAMS.items():
        service.put(f"/v1/streams/{name}", document)
    for name, document in _ALL_CONDITIONS.items():
        service.put(f"/v1/conditions/{name}", document)
    deadline = time.monotonic() + _STALLED_SECONDS
    with console.status("waiting until the job evaluates the conditions"):
        while not all(_status(service, name)["state"] == "running" for name in _ALL_CONDITIONS):
            stack.check()
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"the job did not evaluate the conditions within {_STALLED_SECONDS} s"
                )
            time.sleep(_POLL_SECONDS)
    console.print(
        f"[green]✓[/] {len(STREAMS)} streams, {len(CONDITIONS)} timing conditions and "
        f"{counted(len(QUERIES), 'event query')} over REST"
    )


def _replay(
    run: _Run, stack: LocalStack, service: ServiceClient, rate: float, console: Console
) -> None:
    """Send the events and read the alarms until all have arrived."""
    run.begin = time.monotonic()
    sender = threading.Thread(target=_send, args=(run, stack.settings, rate), daemon=True)
    sender.start()
    asked = 0.0
    with Live(
        console=console, refresh_per_second=_REFRESH_PER_SECOND, get_renderable=lambda: _view(run)
    ):
        for found in follow_alarms(stack.settings, from_beginning=True, report=console.print):
            now = time.monotonic()
            if found is not None:
                _take(run, found.result, now)
            if run.failure is not None:
                raise run.failure
            if run.sending_ended is not None and now - asked > _ASK_SECONDS:
                asked = now
                stack.check()
                if _complete(run, service):
                    return
                if now - max(run.sending_ended, run.last_alarm) > _STALLED_SECONDS:
                    raise ProcessError(
                        f"alarms are missing: no alarm arrived for {_STALLED_SECONDS} s"
                    )


def _send(run: _Run, settings: Settings, rate: float) -> None:
    """Send the events in a separate thread; the main thread raises any error."""
    try:
        _send_events(run, settings, rate)
    except Exception as error:  # noqa: BLE001 - raised again by the main thread
        run.failure = error


def _send_events(run: _Run, settings: Settings, rate: float) -> None:
    """Send the events at the rate and close the streams."""
    sender = EventSender(settings)
    for number, event in enumerate(run.events):
        sender.wait(run.begin + number / rate - time.monotonic())
        run.sent_at[event.topic, event.id] = time.monotonic()
        sender.send(event.topic, event.key, event.value)
    delivery = sender.finish()
    if delivery.failed:
        lost = counted(delivery.failed, "event")
        raise BrokerError(f"the broker did not store {lost}: {delivery.first_error}")
    for name, document in STREAMS.items():
        close_stream(settings, name, document["topic"])
    run.sending_ended = time.monotonic()


def _take(run: _Run, alarm: dict[str, Any], now: float) -> None:
    """Record one alarm."""
    shown = (
        _take_result(run, alarm) if alarm["condition"] in QUERIES else _take_pair(run, alarm, now)
    )
    run.last_alarm = now
    if alarm["condition"] != run.last_condition or len(run.recent) < _SHOWN_ALARMS:
        run.last_condition = alarm["condition"]
        run.recent.append(f"{alarm['condition']}: {shown}")


def _take_pair(run: _Run, alarm: dict[str, Any], now: float) -> str:
    """Record a pair of a timing condition; return its description."""
    run.pairs[pair_of(alarm)] += 1
    sides = [alarm["a"], alarm["b"]]
    later = max(run.sent_at[STREAMS[it["stream"]]["topic"], it["id"]] for it in sides)
    run.latencies.append(now - later)
    return f"{sides[0]['id']} ↔ {sides[1]['id']}, probability {alarm['probability']:.3f}"


def _take_result(run: _Run, alarm: dict[str, Any]) -> str:
    """Record a result of the event query; return its description."""
    grounded = grounded_of(alarm)
    run.grounded[grounded] += 1
    return f"{grounded.cancellation} to {grounded.to}, aircraft {grounded.tail}"


def _complete(run: _Run, service: ServiceClient) -> bool:
    """Return whether every event was evaluated and every alarm was read."""
    statuses = [_status(service, name) for name in _ALL_CONDITIONS]
    marks = [stream["watermark"] for found in statuses for stream in found["streams"].values()]
    written = sum(found["alarms"] for found in statuses)
    closed = all(mark is not None and mark >= CLOSED for mark in marks)
    return closed and run.pairs.total() + run.grounded.total() >= written


def _status(service: ServiceClient, name: str) -> dict[str, Any]:
    return service.get(f"/v1/conditions/{name}/status")


def _report(run: _Run, service: ServiceClient) -> dict[str, Any]:
    """Return the statistics of the run."""
    statuses = {name: _status(service, name) for name in CONDITIONS}
    seconds = max(run.last_alarm - run.begin, 1e-9)
    latencies = np.array(run.latencies or [0.0])
    return {
        "events": len(run.events),
        "pairs": {
            name: sum(1 for pair in run.pairs if pair.condition == name) for name in CONDITIONS
        },
        "results": {GROUNDED: len(run.grounded)},
        "hit_ratio": {name: found["hit_ratio"] for name, found in statuses.items()},
        "seconds": round(seconds, 1),
        "events_per_second": round(len(run.events) / seconds),
        "latency_p50_seconds": round(float(np.quantile(latencies, 0.5)), 3),
        "latency_p99_seconds": round(float(np.quantile(latencies, 0.99)), 3),
    }


def _view(run: _Run) -> RenderableType:
    """Return the live view of the replay."""
    sent, total = len(run.sent_at), len(run.events)
    table = Table(box=None, pad_edge=False)
    table.add_column("condition")
    table.add_column("results", justify="right")
    found = Counter(pair.condition for pair in list(run.pairs))
    found[GROUNDED] = len(run.grounded)
    for name in _ALL_CONDITIONS:
        table.add_row(name, str(found[name]))
    lines = [Text(line, no_wrap=True, overflow="ellipsis", style="dim") for line in run.recent]
    return Group(Text(f"\n{sent} of {total} events sent"), table, *lines)


def _show_report(report: dict[str, Any], console: Console) -> None:
    """Print the statistics as a table."""
    table = Table(box=None, pad_edge=False)
    table.add_column("condition")
    table.add_column("results", justify="right")
    table.add_column("hit ratio", justify="right")
    for name in CONDITIONS:
        ratio = report["hit_ratio"][name]
        table.add_row(
            name, str(report["pairs"][name]), "no probes" if ratio is None else f"{ratio:.3f}"
        )
    for name, count in report["results"].items():
        table.add_row(name, str(count), "")
    console.print(table)
    console.print(
        f"{report['events']} events in {report['seconds']} s ({report['events_per_second']} "
        f"events/s); time from sending the later event of a pair to reading its alarm: median "
        f"{report['latency_p50_seconds']} s, 99 % within {report['latency_p99_seconds']} s",
        soft_wrap=True,
    )
