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
from cli.demo.check import Pair, pair_of, reference_pairs
from cli.demo.data import CONDITIONS, STREAMS, DemoEvent, load_events
from cli.errors import BrokerError, ProcessError, VerificationError
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
_SHOWN_PAIRS = 5
_REFRESH_PER_SECOND = 4


@dataclass(slots=True)
class _Run:
    """State of a run."""

    events: list[DemoEvent]
    begin: float = 0.0
    sent_at: dict[tuple[str, str], float] = field(default_factory=dict)
    sending_ended: float | None = None
    failure: Exception | None = None
    pairs: Counter[Pair] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    last_alarm: float = 0.0
    last_condition: str = ""
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_SHOWN_ALARMS))


def run_demo(days: int, rate: float, console: Console) -> dict[str, Any]:
    """Start a separate stack, replay the data, show the alarms, and check the pairs.

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
        Statistics of the run: events, pairs, hit ratio, rate, latency.

    Raises
    ------
    VerificationError
        The pairs differ from those of the reference, or a pair was reported twice.
    CliError
        A process of the stack did not start, or ended.
    """
    with console.status("reading flights and weather of New York, 2013"):
        run = _Run(load_events(days))
    counts = Counter(event.stream for event in run.events)
    console.print(
        f"New York's airports, {counted(days, 'day')} of 2013: {counts['departures']} delayed "
        f"departures (recorded to the minute), {counts['takeoffs']} of their takeoffs (at a later, "
        f"uncertain time), {counts['bad-weather']} hours of bad weather",
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
    _verify(run.pairs, expected)
    console.print(
        f"[bold green]✓ verified:[/] the {len(expected)} pairs are exactly those of the "
        "reference, each once",
        soft_wrap=True,
    )
    return {**report, "verified": True}


def _register(service: ServiceClient, stack: LocalStack, console: Console) -> None:
    """Register streams and conditions over REST and wait until the job follows them."""
    for name, document in STREAMS.items():
        service.put(f"/v1/streams/{name}", document)
    for name, document in CONDITIONS.items():
        service.put(f"/v1/conditions/{name}", document)
    deadline = time.monotonic() + _STALLED_SECONDS
    with console.status("waiting until the job evaluates the conditions"):
        while not all(_status(service, name)["state"] == "running" for name in CONDITIONS):
            stack.check()
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"the job did not evaluate the conditions within {_STALLED_SECONDS} s"
                )
            time.sleep(_POLL_SECONDS)
    console.print(f"[green]✓[/] {len(STREAMS)} streams, {len(CONDITIONS)} conditions over REST")


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
        run.sent_at[event.stream, event.id] = time.monotonic()
        sender.send(STREAMS[event.stream]["topic"], event.key, event.value)
    delivery = sender.finish()
    if delivery.failed:
        lost = counted(delivery.failed, "event")
        raise BrokerError(f"the broker did not store {lost}: {delivery.first_error}")
    for name, document in STREAMS.items():
        close_stream(settings, name, document["topic"])
    run.sending_ended = time.monotonic()


def _take(run: _Run, alarm: dict[str, Any], now: float) -> None:
    """Record one alarm."""
    pair = pair_of(alarm)
    run.pairs[pair] += 1
    later = max(run.sent_at[alarm[side]["stream"], alarm[side]["id"]] for side in ("a", "b"))
    run.latencies.append(now - later)
    run.last_alarm = now
    if alarm["condition"] != run.last_condition or len(run.recent) < _SHOWN_ALARMS:
        run.last_condition = alarm["condition"]
        run.recent.append(
            f"{alarm['condition']}: {alarm['a']['id']} ↔ {alarm['b']['id']}, "
            f"probability {alarm['probability']:.3f}"
        )


def _complete(run: _Run, service: ServiceClient) -> bool:
    """Return whether every event was evaluated and every alarm was read."""
    statuses = [_status(service, name) for name in CONDITIONS]
    marks = [stream["watermark"] for found in statuses for stream in found["streams"].values()]
    written = sum(found["alarms"] for found in statuses)
    closed = all(mark is not None and mark >= CLOSED for mark in marks)
    return closed and run.pairs.total() >= written


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
        "hit_ratio": {name: found["hit_ratio"] for name, found in statuses.items()},
        "seconds": round(seconds, 1),
        "events_per_second": round(len(run.events) / seconds),
        "latency_p50_seconds": round(float(np.quantile(latencies, 0.5)), 3),
        "latency_p99_seconds": round(float(np.quantile(latencies, 0.99)), 3),
    }


def _verify(found: Counter[Pair], expected: set[Pair]) -> None:
    """Compare the pairs with those of the reference.

    Raises
    ------
    VerificationError
        Pairs are missing, unexpected or repeated.
    """
    differences = {
        "missing": expected - set(found),
        "too many": set(found) - expected,
        "twice": {pair for pair, times in found.items() if times > 1},
    }
    said = [
        f"{len(pairs)} {what}, for instance {sorted(pairs)[:_SHOWN_PAIRS]}"
        for what, pairs in differences.items()
        if pairs
    ]
    if said:
        raise VerificationError("the pairs differ from the reference: " + "; ".join(said))


def _view(run: _Run) -> RenderableType:
    """Return the live view of the replay."""
    sent, total = len(run.sent_at), len(run.events)
    table = Table(box=None, pad_edge=False)
    table.add_column("condition")
    table.add_column("pairs", justify="right")
    found = Counter(pair.condition for pair in list(run.pairs))
    for name in CONDITIONS:
        table.add_row(name, str(found[name]))
    lines = [Text(line, no_wrap=True, overflow="ellipsis", style="dim") for line in run.recent]
    return Group(Text(f"\n{sent} of {total} events sent"), table, *lines)


def _show_report(report: dict[str, Any], console: Console) -> None:
    """Print the statistics as a table."""
    table = Table(box=None, pad_edge=False)
    table.add_column("condition")
    table.add_column("pairs", justify="right")
    table.add_column("hit ratio", justify="right")
    for name in CONDITIONS:
        ratio = report["hit_ratio"][name]
        table.add_row(
            name, str(report["pairs"][name]), "no probes" if ratio is None else f"{ratio:.3f}"
        )
    console.print(table)
    console.print(
        f"{report['events']} events in {report['seconds']} s ({report['events_per_second']} "
        f"events/s); time from sending the later event to reading the alarm: median "
        f"{report['latency_p50_seconds']} s, 99 % within {report['latency_p99_seconds']} s",
        soft_wrap=True,
    )
