"""Run a day of stream time at full speed: `python -m benchmarks.soak --hours 24 --events 30000`.

In each hour of stream time the broker is restarted while events are sent, a condition is added, one
is changed, and the oldest of the added ones is removed. One percent of the records are not events,
and half a percent of the events are two hours late. At the end all results are compared with the
expected ones. An hour takes about half a minute: the run is not part of `python -m benchmarks`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report import Report
from benchmarks.soak.load import MAX_UNCERTAINTY_US, HourlyLoad, make_stream
from benchmarks.soak.usage import Usage, read_usage
from correlation.engine.blocks import Control
from correlation.resources.records import Resource
from correlation.timing.factored.expanding import Expander
from correlation.topk.results import CHANGES, PRESENT
from tests.crash.installation import Installation
from tests.crash.judge import Verdict, change, compare, expand, facts, results_of_blocks
from tests.crash.load import SETS
from tests.support.every_kind import LIST, conditions_of, near
from tests.support.kafka import Sent, produce, read_committed
from tests.support.topk_lists import folded, newest_lists
from tests.support.workload import NearCondition

if TYPE_CHECKING:
    from correlation.resources.records import Document
    from tests.crash.sending import SentEvent

_WINDOW_US = 3 * MAX_UNCERTAINTY_US // 2
# Hours after which an added condition is removed.
_KEPT_HOURS = 3
_VARIED = "varied"
_MIB = 2**20
_MAX_GROWTH = 1.15
# With fewer hours, growth is not judged: processes fill their caches at first.
_MIN_HOURS = 12


class Soaked(NamedTuple):
    """Result of a run.

    Attributes
    ----------
    usages
        What the installation used at the end of each hour.
    verdict
        Comparison of the results with the expected ones.
    events
        Number of events that were sent.
    restarts
        Number of times that the job ended and was started again.
    """

    usages: list[Usage]
    verdict: Verdict
    events: int
    restarts: int


class Soak:
    """A run in one installation.

    Parameters
    ----------
    on
        The installation.
    """

    def __init__(self, on: Installation[HourlyLoad]) -> None:
        self._on = on
        self._controls: list[Control] = []
        # Conditions on pairs of "a" and "b": name, window, first hour, and the hour after the last.
        self._pairs: list[tuple[str, int, int, int]] = []
        # Config records and events of each hour.
        self._blocks: list[tuple[list[Control], dict[str, list[SentEvent]]]] = []

    def run(self, hours: int) -> Soaked:
        """Send the events of the hours, and compare the results."""
        on = self._on
        for name in ("a", "b", SETS):
            on.add_stream(name)
        conditions = conditions_of(_WINDOW_US, self_window_us=_WINDOW_US // 3)
        conditions["list"] = {**LIST, "a": SETS, "per_key": True, "report": "every"}
        for name, document in conditions.items():
            self._register(name, document)
        on.job.start()
        usages = []
        for hour in range(hours):
            self._change_conditions(hour)
            self._send(hour)
            usages.append(read_usage(on))
            say(f"hour {hour + 1}: {usages[-1]}")
        events = sum(map(len, on.load.sent.values()))
        return Soaked(usages, self._verdict(), events, on.restarts)

    def _send(self, hour: int) -> None:
        """Send the events of an hour, and wait until the job has evaluated them."""
        on = self._on
        before = {name: on.load.count(name) for name in on.load.sent}
        on.load.send_hour(hour, self._restart_broker)
        on.wait_until_consumed()
        sent = {name: events[before[name] :] for name, events in on.load.sent.items()}
        self._blocks.append((self._controls, sent))
        self._controls = []

    def _restart_broker(self) -> None:
        self._on.broker.stop()
        self._on.supervise()

    def _change_conditions(self, hour: int) -> None:
        """Add a condition, change one, and remove one; the job has read all events."""
        self._register(f"added-{hour}", near(_WINDOW_US + hour))
        self._pairs.append((f"added-{hour}", _WINDOW_US + hour, hour, hour + _KEPT_HOURS))
        self._register(_VARIED, near(_WINDOW_US // 2 + hour))
        self._pairs.append((_VARIED, _WINDOW_US // 2 + hour, hour, hour + 1))
        if hour >= _KEPT_HOURS:
            removed = Resource("condition", f"added-{hour - _KEPT_HOURS}", 1, 0, {})
            self._on.job.delete(removed)
            self._controls.append(Control(self._offset(), removed.key, None))
        topic = self._on.job.topics.config
        newest = read_committed(self._on.job.bootstrap, topic)[-1]
        self._on.wait_until_read(topic, newest.offset + 1)

    def _register(self, name: str, document: Document) -> None:
        self._on.register("conditions", name, document)
        version = self._on.client.get(f"/v1/conditions/{name}")["version"]
        record = Resource("condition", name, version, 0, document)
        self._controls.append(Control(self._offset(), record.key, record.to_record()))

    def _offset(self) -> int:
        return sum(len(it) for it, _ in self._blocks) + len(self._controls)

    def _verdict(self) -> Verdict:
        """Close all streams, and compare the results with the expected ones."""
        on, job = self._on, self._on.job
        ends = [{"v": 1, "stream": name, "read_up_to": "end"} for name in on.load.sent]
        heartbeats = [Sent(json.dumps(it).encode()) for it in ends]
        places = produce(job.bootstrap, job.topics.heartbeats, heartbeats)
        on.wait_until_read(job.topics.heartbeats, places[-1][1] + 1)
        say("comparing the results")
        wanted, changes = results_of_blocks(on.streams, self._blocks)
        wanted.update(map(change, changes))
        found: Counter[str] = Counter()
        expander = Expander()
        for it in read_committed(job.bootstrap, job.topics.alarms):
            found.update(map(facts, expand([json.loads(it.value or b"")], expander)))
        for it in read_committed(job.bootstrap, job.topics.of(CHANGES)):
            found[change(json.loads(it.value or b""))] += 1
        problems = [*self._compare_with_oracle(wanted), *self._compare_topics()]
        lists = newest_lists(read_committed(job.bootstrap, job.topics.of(PRESENT)))
        if {name: it for name, it in lists.items() if it} != folded(changes):
            problems.append("the present lists are not those of the changes")
        return compare(wanted, found, problems)

    def _compare_with_oracle(self, wanted: Counter[str]) -> list[str]:
        """Compare the pairs of "a" and "b" with those of the oracle, hour by hour."""
        expected: dict[str, set[tuple[str, str, str]]] = {}
        every = ("near", _WINDOW_US, 0, len(self._blocks))
        for name, window_us, begin, end in (every, *self._pairs):
            events = [
                it.event
                for _, sent in self._blocks[begin:end]
                for stream in "ab"
                for it in sent[stream]
            ]
            oracle = NearCondition(name, "a", "b", window_us, "0.6")
            expected.setdefault(name, set()).update(oracle.pairs(events))
        found: dict[str, set[tuple[str, str, str]]] = {name: set() for name in expected}
        for it in wanted:
            name, _, value = it.partition("|")
            if name in found:
                alarm = json.loads(value)
                found[name].add((name, alarm["a"]["id"], alarm["b"]["id"]))
        return [f"{it}: the oracle finds other pairs" for it in found if found[it] != expected[it]]

    def _compare_topics(self) -> list[str]:
        """Compare the late events, the dead letters and the counts with what was sent."""
        on, job = self._on, self._on.job
        problems = []
        counts = {name: on.load.count(name) for name in on.load.sent}
        if on.consumed() != counts:
            problems.append(f"{counts} events sent, {on.consumed()} counted")
        letters = Counter(it.value for it in read_committed(job.bootstrap, job.topics.dead_letter))
        if letters != Counter(on.load.bad):
            problems.append(f"{letters.total()} dead letters, {len(on.load.bad)} bad records")
        records = read_committed(job.bootstrap, job.topics.late)
        ids = Counter(json.loads(it.value or b"")["id"] for it in records)
        if ids != Counter(on.load.late):
            problems.append(f"{ids.total()} late events, {len(on.load.late)} were sent")
        return problems


def report(soaked: Soaked) -> Report:
    """Build the table: a row for every third hour."""
    verdict = soaked.verdict
    hours = len(soaked.usages)
    shown = sorted({0, *range(2, hours, 3), hours - 1})
    return Report(
        "Soak",
        f"{hours} hours of stream time, {soaked.events:,} events. Of {verdict.expected.total():,} "
        f"expected results, {len(verdict.missing)} were missing, {len(verdict.extra)} too many, "
        f"{len(verdict.twice)} written twice; other differences: {len(verdict.problems)}. The job "
        f"was started again {soaked.restarts} times.",
        (
            "hour",
            "JVM",
            "Python",
            "service",
            "broker",
            "open files",
            "checkpoint",
            "state topic",
            "metrics topic",
            "buffered events",
        ),
        [[f"{hour + 1}", *_cells(soaked.usages[hour])] for hour in shown],
    )


def _cells(usage: Usage) -> list[str]:
    memory = [f"{it / _MIB:,.0f} MiB" for it in usage[:4]]
    files = f"{usage.checkpoint_files} files, {usage.checkpoint_bytes / _MIB:,.1f} MiB"
    topics = [f"{it / _MIB:,.1f} MiB" for it in (usage.state_bytes, usage.metrics_bytes)]
    return [*memory, f"{usage.open_files}", files, *topics, f"{usage.buffered_events:,}"]


def growing(usages: list[Usage]) -> list[str]:
    """Return what is larger in the last quarter of the hours than in the second one, by 15 %.

    The topic of metrics grows until Kafka deletes its records by their age.
    """
    quarter = len(usages) // 4
    found = []
    for name in Usage._fields:
        values = [getattr(it, name) for it in usages]
        before, after = median(values[quarter : 2 * quarter]), median(values[-quarter:])
        if name != "metrics_bytes" and after > _MAX_GROWTH * before:
            found.append(f"{name}: {before:,.0f}, then {after:,.0f}")
    return found


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def main() -> int:
    """Run with the options of the command line; return 1 if a result is wrong or memory grows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--hours", type=int, default=24, help="hours of stream time")
    parser.add_argument("--events", type=int, default=30_000, help="events of a and b in an hour")
    parser.add_argument("--seed", type=int, default=0, help="seed of the events")
    parser.add_argument("--folder", type=Path, help="data of the run; default: a new folder")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="coincide-soak-"))
    make_load = partial(HourlyLoad, seed=options.seed, events=options.events)
    with Installation(folder, make_load, make_stream) as on:
        soaked = Soak(on).run(options.hours)
    for title, found in zip(
        ("missing", "too many", "twice", "other"), soaked.verdict[1:], strict=True
    ):
        for it in found[:5]:
            say(f"{title}: {it[:500]}")
    larger = growing(soaked.usages) if options.hours >= _MIN_HOURS else []
    for it in larger:
        say(f"growing: {it}")
    table = report(soaked)
    table.show()
    say(table.to_markdown())
    return 0 if soaked.verdict.is_right and not larger else 1


if __name__ == "__main__":
    sys.exit(main())
