"""Replay against the judge, the job's packing and Program: whatever the files, in any order."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.demo_check import Pair, pair_of, reference_pairs
from cli.demo_data import DemoEvent
from cli.replay import chunks, merging
from cli.replay.options import EventFile, Format, ReplayOptions
from cli.replay.run import run_replay
from tests.oracle.intervals import is_satisfied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LONGEST, DELAY = 12, 9
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "parquet")
STREAMS = {
    name: {
        "topic": name,
        "longest_us": LONGEST,
        "max_delay_us": DELAY,
        "mapping": {
            "id": "id",
            "key": "where.site",
            "earliest": "from",
            "latest": "to",
            "format": "epoch_us",
        },
    }
    for name in ("x", "y")
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "near": {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 25, "threshold": "0.7"},
    "tie": {"kind": "mutual_deadline", "a": "y", "b": "x", "window_us": 12, "threshold": "0.5"},
    "narrow": {"kind": "within", "a": "x", "b": "y", "lower_us": 2, "upper_us": 7},
    "self": {"kind": "mutual_deadline", "a": "x", "b": "x", "window_us": 15, "threshold": "0.5"},
    "self_within": {"kind": "within", "a": "y", "b": "y", "lower_us": -2, "upper_us": 20},
}
CONDITIONS["narrow"]["threshold"], CONDITIONS["self_within"]["threshold"] = "0.4", "0.3"


@dataclass(frozen=True)
class Event:
    """A row of a file."""

    stream: str
    id: str
    key: str
    earliest: int
    latest: int

    @property
    def value(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "where": {"site": self.key},
            "from": self.earliest,
            "to": self.latest,
        }


def _events(rng: random.Random, count: int) -> list[Event]:
    """Give events in an order of arrival that keeps the promise, with many ties among them."""
    found = []
    for number in range(count):
        stream = rng.choice("xy")
        latest = rng.randint(-40, 60) if rng.random() < 0.8 else 10
        length = rng.choice([0, 4, 4, LONGEST, rng.randint(0, LONGEST)])
        event = Event(stream, f"{stream}{number:03}", rng.choice("kqr"), latest - length, latest)
        found.append((latest + rng.randint(0, DELAY), event))
    found.sort(key=lambda entry: entry[0])
    return [event for _, event in found]


def _window(document: dict[str, Any]) -> tuple[int, int]:
    if document["kind"] == "mutual_deadline":
        return -document["window_us"], document["window_us"]
    return document["lower_us"], document["upper_us"]


def _expected(
    events: Iterable[Event], name: str, threshold: str | None = None
) -> set[tuple[str, str]]:
    """Give the pairs that the judge finds, those of a self-correlation in one order."""
    document = CONDITIONS[name]
    window = (*_window(document), None, None, Fraction(threshold or document["threshold"]))
    by_stream = {role: [it for it in events if it.stream == document[role]] for role in "ab"}
    found = set()
    for a in by_stream["a"]:
        for b in by_stream["b"]:
            if a.key != b.key or a.id == b.id:
                continue
            if not is_satisfied((a.earliest, a.latest), (b.earliest, b.latest), window):
                continue
            is_self = document["a"] == document["b"]
            found.add((min(a.id, b.id), max(a.id, b.id)) if is_self else (a.id, b.id))
    return found


def _write(path: Path, events: Sequence[Event], form: Format) -> None:
    if form == "jsonl":
        lines = [json.dumps(event.value) + "\n" for event in events]
        path.write_text("".join(lines), encoding="utf-8")
    elif form == "csv":
        with path.open("w", newline="", encoding="utf-8") as opened:
            rows = csv.writer(opened, quoting=csv.QUOTE_NONNUMERIC)
            rows.writerow(["to", "note", "id", "from", "where.site"])
            rows.writerows(
                [event.latest, 'two "lines"\nof, text', event.id, event.earliest, event.key]
                for event in events
            )
    else:
        schema = pa.schema(
            {
                "id": pa.string(),
                "where": pa.struct({"site": pa.string()}),
                "from": pa.int64(),
                "to": pa.int64(),
            }
        )
        pq.write_table(pa.Table.from_pylist([it.value for it in events], schema), path)


def _resources(folder: Path) -> Path:
    documents = [{"kind": "stream", "name": name, **found} for name, found in STREAMS.items()]
    documents += [{"name": name, **found} for name, found in CONDITIONS.items()]
    path = folder / "resources.yaml"
    path.write_text("\n---\n".join(map(json.dumps, documents)), encoding="utf-8")
    return path


def _options(folder: Path, events: Sequence[Event], form: Format, parts: int) -> ReplayOptions:
    """Write the events into so many files for each stream, and ask for their alarms."""
    files = []
    for stream in "xy":
        mine = [event for event in events if event.stream == stream]
        for part in range(parts):
            path = folder / f"{stream}{part}.{form}"
            _write(path, mine[part::parts], form)
            files.append(EventFile(stream, part, path, form))
    return ReplayOptions(
        (_resources(folder),), tuple(files), processes=1, alarms=folder / "alarms.jsonl"
    )


def _replay(options: ReplayOptions) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    report = run_replay(options, Console(stderr=True))
    assert options.alarms is not None
    return report, [json.loads(line) for line in options.alarms.read_bytes().splitlines()]


def _pairs(alarms: Iterable[dict[str, Any]], name: str) -> Counter[tuple[str, str]]:
    return Counter(pair_of(alarm)[1:] for alarm in alarms if alarm["condition"] == name)


@pytest.fixture(scope="module", autouse=True)
def _small_pieces() -> Iterator[None]:
    """Cut files and blocks where a few events already fill several of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_MOST_ROWS", 5)
        patch.setattr(merging, "_FIRST_BLOCK", 4)
        patch.setattr(merging, "_MOST_BLOCK", 11)
        yield


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 70),
    form=st.sampled_from(FORMATS),
    parts=st.integers(1, 3),
    is_sorted=st.booleans(),
)
def test_replay_reports_the_judges_pairs_once(
    seed: int, count: int, form: Format, parts: int, *, is_sorted: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    events = _events(rng, count)
    if is_sorted:
        rng.shuffle(events)
    with TemporaryDirectory() as folder:
        options = _options(Path(folder), events, form, parts)
        report, alarms = _replay(replace(options, sort=is_sorted))
    for name in CONDITIONS:
        expected = _expected(events, name)
        assert _pairs(alarms, name) == dict.fromkeys(expected, 1), name
        assert report["conditions"][name]["pairs"] == len(expected)
    assert report["events"] == count
    for alarm in alarms:
        assert alarm["detected_at"] == max(alarm["a"]["latest"], alarm["b"]["latest"])
        assert alarm["late"] is False


@given(seed=st.integers(0, 2**32), count=st.integers(0, 60))
def test_counts_at_thresholds_are_the_judges(seed: int, count: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - as above
    events = _events(rng, count)
    at = ("0.25", "0.5", "0.75", "1")
    with TemporaryDirectory() as folder:
        options = _options(Path(folder), events, "jsonl", 1)
        thresholds = tuple(map(Decimal, at))
        report = run_replay(replace(options, alarms=None, thresholds=thresholds), Console())
    for name, found in report["conditions"].items():
        assert found["pairs_at"] == {it: len(_expected(events, name, it)) for it in at}, name


def test_the_pairs_are_those_of_program(tmp_path: Path) -> None:
    events = _events(random.Random(2006), 300)  # noqa: S311 - as above
    _, alarms = _replay(_options(tmp_path, events, "csv", 2))
    sent = [
        DemoEvent(it.stream, it.id, it.key.encode(), json.dumps(it.value).encode(), it.latest)
        for it in events
    ]
    found = Counter(map(pair_of, alarms))
    assert found == dict.fromkeys(reference_pairs(STREAMS, CONDITIONS, sent), 1)
    assert all(isinstance(pair, Pair) for pair in found)


@pytest.mark.slow
def test_processes_and_formats_change_not_a_byte(tmp_path: Path) -> None:
    events = _events(random.Random(2010), 500)  # noqa: S311 - as above
    written = set()
    for processes, form in enumerate(FORMATS, start=1):
        folder = tmp_path / form
        folder.mkdir()
        options = _options(folder, events, form, 2)
        run_replay(replace(options, processes=processes), Console(stderr=True))
        written.add((folder / "alarms.jsonl").read_bytes())
    (alarms,) = written
    assert len(alarms.splitlines()) == sum(len(_expected(events, name)) for name in CONDITIONS)
