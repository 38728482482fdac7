"""The demo: real data through the whole local stack, checked against references."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from rich.live import Live

from cli.client.alarms import follow_alarms
from cli.client.committed import read_committed
from cli.client.events import EventSender, close_stream
from cli.client.lines import counted
from cli.client.rest import ServiceClient
from cli.demo.check import reference_pairs, verify
from cli.demo.data import load_events
from cli.demo.events import interleave
from cli.demo.judge import judge_grounded
from cli.demo.list_check import verify_lists
from cli.demo.list_judge import ListJudge
from cli.demo.messages import load_messages, message_events
from cli.demo.resources import ALIKE, CONDITIONS, GROUNDED, LISTS, QUERIES, STREAMS
from cli.demo.view import Run, show_report
from cli.errors import BrokerError, ProcessError
from cli.stack.options import StackOptions
from cli.stack.stack import LocalStack, terminable
from correlation.engine.heartbeats import CLOSED
from correlation.topk.results import PRESENT
from kafka_client.messages import as_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from cli.settings import Settings

# Max time without progress, on any machine: until the conditions run, and between two results.
_STALLED_SECONDS = 600
_ASK_SECONDS = 0.5
_POLL_SECONDS = 0.2
_REFRESH_PER_SECOND = 4
_ALL_CONDITIONS = {**CONDITIONS, **QUERIES, **LISTS}
_Documents = dict[str, dict[str, Any]]


class _Output(NamedTuple):
    """Input of the check from a stack that has ended: stored documents, and all present lists."""

    streams: _Documents
    conditions: _Documents
    lists: list[dict[str, Any]]


def run_demo(days: int, messages: int, rate: float, console: Console) -> dict[str, Any]:
    """Start a separate stack, replay the data, show the results, and check them.

    Parameters
    ----------
    days
        Days of 2013 to replay.
    messages
        Number of chat messages to replay.
    rate
        Events per second sent to Kafka.
    console
        Console for all output.

    Returns
    -------
    dict
        Statistics of the run: events, pairs, results of the query, changes of the list, hit ratio,
        rate, latency.

    Raises
    ------
    VerificationError
        The pairs differ from those of the reference, the results of the query from those of the
        judge, one was reported twice, or a list differs from that of all pairs.
    CliError
        A process of the stack did not start, or ended.
    """
    with console.status("reading flights and weather of New York, 2013, and chat messages of 2018"):
        chat = load_messages(messages)
        events = interleave(load_events(days), message_events(chat))
        run = Run(events, {it.id: it.text for it in chat})
    counts = Counter(event.topic for event in run.events)
    console.print(
        f"New York's airports, {counted(days, 'day')} of 2013: {counts['departures']} departures "
        f"(recorded to the minute), {counts['takeoffs']} takeoffs of the delayed ones (at a later, "
        f"uncertain time), {counted(counts['bad-weather'], 'hour')} of bad weather, "
        f"{counts['cancellations']} cancelled flights of known aircraft; "
        f"{counted(len(chat), 'chat message')} of {len({it.conversation for it in chat})} "
        "conversations of 2018",
        soft_wrap=True,
    )
    options = StackOptions(data=None, broker_port=0, service_port=0)
    with (
        terminable(),
        LocalStack(options, console) as stack,
        ServiceClient.of(stack.settings) as service,
    ):
        _register(service, stack, console)
        _replay(run, stack, service, rate, console)
        ratios = {name: _status(service, name)["hit_ratio"] for name in CONDITIONS}
        output = _read_output(stack.settings, service)
    if not console.is_terminal:
        # Without a terminal, the live view does not end its last line.
        console.print()
    report = run.report(ratios)
    show_report(report, console)
    with console.status("comparing with the references"):
        lists = _check(run, output, chat[-1].time_us, console)
    return {**report, "lists": {ALIKE: lists}, "verified": True}


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
        f"[green]✓[/] {len(STREAMS)} streams, {len(CONDITIONS)} timing conditions, "
        f"{counted(len(QUERIES), 'event query')} and {counted(len(LISTS), 'top-k list')} over REST"
    )


def _replay(
    run: Run, stack: LocalStack, service: ServiceClient, rate: float, console: Console
) -> None:
    """Send the events and read the results until all have arrived."""
    run.begin = time.monotonic()
    sender = threading.Thread(target=_send, args=(run, stack.settings, rate), daemon=True)
    sender.start()
    asked = 0.0
    with Live(console=console, refresh_per_second=_REFRESH_PER_SECOND, get_renderable=run.view):
        for found in follow_alarms(stack.settings, from_beginning=True, report=console.print):
            now = time.monotonic()
            if found is not None:
                run.take(found.result, now)
            if run.failure is not None:
                raise run.failure
            if now - asked <= _ASK_SECONDS:
                continue
            asked = now
            stack.check()
            run.present = service.get(f"/v1/conditions/{ALIKE}/topk")
            if run.sending_ended is None:
                continue
            if _complete(run, service):
                return
            if now - max(run.sending_ended, run.last_result) > _STALLED_SECONDS:
                raise ProcessError(
                    f"results are missing: no result arrived for {_STALLED_SECONDS} s"
                )


def _send(run: Run, settings: Settings, rate: float) -> None:
    """Send the events in a separate thread; the main thread raises any error."""
    try:
        _send_events(run, settings, rate)
    except Exception as error:  # noqa: BLE001 - raised again by the main thread
        run.failure = error


def _send_events(run: Run, settings: Settings, rate: float) -> None:
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


def _complete(run: Run, service: ServiceClient) -> bool:
    """Return whether every event was evaluated and every result was read."""
    statuses = [_status(service, name) for name in _ALL_CONDITIONS]
    marks = [stream["watermark"] for found in statuses for stream in found["streams"].values()]
    written = sum(found["alarms"] for found in statuses)
    closed = all(mark is not None and mark >= CLOSED for mark in marks)
    return closed and run.results >= written


def _status(service: ServiceClient, name: str) -> dict[str, Any]:
    return service.get(f"/v1/conditions/{name}/status")


def _read_output(settings: Settings, service: ServiceClient) -> _Output:
    """Read the stored documents, and the present lists in the order in which they were written."""
    records = read_committed(settings, settings.topics.of(PRESENT))
    values = [as_bytes(it.value()) for it in records if as_bytes(it.key()) == ALIKE.encode()]
    return _Output(
        {name: _document(service, "streams", name) for name in STREAMS},
        {name: _document(service, "conditions", name) for name in _ALL_CONDITIONS},
        # A withdrawn list has a tombstone.
        [{"items": None} if it is None else orjson.loads(it) for it in values],
    )


def _document(service: ServiceClient, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = service.get(f"/v1/{kind}/{name}")["document"]
    return found


def _check(run: Run, output: _Output, end_us: int, console: Console) -> int:
    """Compare all results; return the number of lists compared.

    Parameters
    ----------
    run
        The run.
    output
        What was read at its end.
    end_us
        Time of the last message, in µs.
    console
        Console for what was compared.
    """
    timing = {name: output.conditions[name] for name in CONDITIONS}
    read = {it[role] for it in timing.values() for role in "ab"}
    streams = {name: output.streams[name] for name in read}
    expected = reference_pairs(streams, timing, run.events)
    verify(run.pairs, expected, "the pairs differ from the reference")
    grounded = judge_grounded(run.events)
    verify(run.grounded, grounded, f"the results of {GROUNDED} differ from the judge's")
    judge = ListJudge(output.conditions[ALIKE], run.events)
    lists = verify_lists(judge, output.lists, run.changes, end_us)
    console.print(
        f"[bold green]✓ verified:[/] the {len(expected)} pairs are exactly those of the "
        f"reference, each once; the {counted(len(grounded), 'result')} of {GROUNDED} are exactly "
        "those of a direct comparison of cancellations and departures, each once; "
        f"{counted(lists, 'list')} of {ALIKE}, as written and as they follow from "
        f"{counted(len(run.changes), 'change')}, are exactly those of all pairs of messages",
        soft_wrap=True,
    )
    return lists
