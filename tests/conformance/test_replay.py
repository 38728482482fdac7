"""Replay against the oracle, the job's packing and Program, for all files in any order."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.demo.check import pair_of, reference_pairs
from cli.demo.events import DemoEvent
from cli.replay import chunks, merging
from cli.replay.options import EventFile, Format, ReplayOptions
from cli.replay.run import run_replay
from tests.oracle.emit import best_target
from tests.oracle.intervals import is_satisfied
from tests.support.slots import CONDITIONS as PAIRS
from tests.support.slots import (
    DELAY,
    LONGEST,
    PARTITIONS,
    Arrival,
    draw_arrivals,
    judged_window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FORMATS: tuple[Format, ...] = ("jsonl", "csv", "parquet")
STREAMS = {
    name: {
        "topic": name,
        "max_uncertainty_us": LONGEST,
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
    **PAIRS,
    "best": {**PAIRS["tie"], "emit": "best"},
    "best_self": {**PAIRS["self_within"], "emit": "best"},
    "alone": {**PAIRS["narrow"], "emit": "unmatched"},
    "alone_self": {**PAIRS["self"], "emit": "unmatched"},
}
Pair = tuple[str, str | None]


def _value(event: Arrival) -> dict[str, Any]:
    return {
        "id": event.id,
        "where": {"site": event.key},
        "from": event.earliest,
        "to": event.latest,
    }


def _expected(events: Iterable[Arrival], name: str, threshold: str | None = None) -> set[Pair]:
    """Return the report of the judge, the pairs of a self-correlation in one order."""
    document = CONDITIONS[name] | ({"threshold": threshold} if threshold else {})
    emit = document.get("emit", "pairs")
    window = judged_window(document)
    found: set[Pair] = set()
    by_role = {role: [it for it in events if it.stream == document[role]] for role in "ab"}
    for a in by_role["a"]:
        targets = [b for b in by_role["b"] if a.key == b.key and a.id != b.id]
        if emit == "pairs":
            pairs = [(a, b) for b in targets if is_satisfied(a.interval, b.interval, window)]
            found.update(_in_order(document, a.id, b.id) for a, b in pairs)
            continue
        best = best_target(a.interval, [(it.interval, it.id.encode()) for it in targets], window)
        if (best is None) == (emit == "unmatched"):
            found.add((a.id, None if best is None else targets[best].id))
    return found


def _in_order(document: dict[str, Any], a: str, b: str | None) -> Pair:
    if document["a"] == document["b"] and b is not None and "emit" not in document:
        return min(a, b), max(a, b)
    return a, b


def _write(path: Path, events: Sequence[Arrival], form: Format) -> None:
    if form == "jsonl":
        lines = [json.dumps(_value(event)) + "\n" for event in events]
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
        pq.write_table(pa.Table.from_pylist(list(map(_value, events)), schema), path)


def _resources(folder: Path) -> Path:
    documents = [{"kind": "stream", "name": name, **found} for name, found in STREAMS.items()]
    documents += [{"name": name, **found} for name, found in CONDITIONS.items()]
    path = folder / "resources.yaml"
    path.write_text("\n---\n".join(map(json.dumps, documents)), encoding="utf-8")
    return path


def _options(
    folder: Path, events: Sequence[Arrival], form: Format, parts: int = PARTITIONS
) -> ReplayOptions:
    """Write the events into one or two files for each stream, and ask for their alarms."""
    files = []
    for stream, part in product("xy", range(parts)):
        mine = [it for it in events if it.stream == stream and it.partition % parts == part]
        path = folder / f"{stream}{part}.{form}"
        _write(path, mine, form)
        files.append(EventFile(stream, part, path, form))
    return ReplayOptions(
        (_resources(folder),),
        tuple(files),
        processes=1,
        alarms=folder / "alarms.jsonl",
        force=True,
    )


def _replay(options: ReplayOptions) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    report = run_replay(options, Console(stderr=True))
    assert options.alarms is not None
    return report, [json.loads(line) for line in options.alarms.read_bytes().splitlines()]


def _pairs(alarms: Iterable[dict[str, Any]], name: str) -> Counter[Pair]:
    return Counter(
        _in_order(CONDITIONS[name], alarm["a"]["id"], alarm["b"] and alarm["b"]["id"])
        for alarm in alarms
        if alarm["condition"] == name
    )


@pytest.fixture(scope="module", autouse=True)
def _small_pieces() -> Iterator[None]:
    """Cut files and blocks where a few events already fill several of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_MAX_ROWS", 5)
        patch.setattr(merging, "_FIRST_BLOCK", 4)
        patch.setattr(merging, "_MAX_BLOCK", 11)
        yield


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 60),
    form=st.sampled_from(FORMATS),
    parts=st.integers(1, PARTITIONS),
    is_sorted=st.booleans(),
    # Few conditions at a time: the widest of many would keep the buffers for all of them.
    names=st.sets(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=2)
    | st.just(set(CONDITIONS)),
)
def test_replay_reports_what_the_judge_does_once(
    seed: int, count: int, form: Format, parts: int, names: set[str], *, is_sorted: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    events = draw_arrivals(rng, count)
    if is_sorted:
        rng.shuffle(events)
    with TemporaryDirectory() as folder:
        options = _options(Path(folder), events, form, parts)
        report, alarms = _replay(replace(options, sort=is_sorted, conditions=tuple(names)))
    assert set(report["conditions"]) == names
    for name in names:
        expected = _expected(events, name)
        assert _pairs(alarms, name) == dict.fromkeys(expected, 1), name
        assert report["conditions"][name]["pairs"] == len(expected)
    assert report["events"] == count
    for alarm in alarms:
        sides = [alarm[role]["latest"] for role in "ab" if alarm[role]]
        assert alarm["detected_at"] == max(sides)
        assert alarm["late"] is False


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), count=st.integers(0, 40))
def test_counts_at_thresholds_are_the_judges(seed: int, count: int) -> None:
    events = draw_arrivals(random.Random(seed), count)  # noqa: S311 - as above
    at = ("0.25", "0.5", "0.75", "1")
    with TemporaryDirectory() as folder:
        options = _options(Path(folder), events, "jsonl")
        thresholds = tuple(map(Decimal, at))
        report = run_replay(replace(options, alarms=None, thresholds=thresholds), Console())
    for name, found in report["conditions"].items():
        assert found["pairs_at"] == {it: len(_expected(events, name, it)) for it in at}, name


def test_the_pairs_are_those_of_program(tmp_path: Path) -> None:
    events = draw_arrivals(random.Random(2006), 300)  # noqa: S311 - as above
    options = replace(_options(tmp_path, events, "csv"), conditions=tuple(PAIRS))
    _, alarms = _replay(options)
    sent = [
        DemoEvent(it.stream, it.id, it.key.encode(), json.dumps(_value(it)).encode(), it.latest)
        for it in events
    ]
    expected = reference_pairs(STREAMS, PAIRS, sent)
    assert Counter(map(pair_of, alarms)) == dict.fromkeys(expected, 1)


@pytest.mark.slow
def test_processes_and_formats_change_not_a_byte(tmp_path: Path) -> None:
    events = draw_arrivals(random.Random(2010), 500)  # noqa: S311 - as above
    written = set()
    for processes, form in enumerate(FORMATS, start=1):
        folder = tmp_path / form
        folder.mkdir()
        run_replay(
            replace(_options(folder, events, form), processes=processes), Console(stderr=True)
        )
        written.add((folder / "alarms.jsonl").read_bytes())
    (alarms,) = written
    assert len(alarms.splitlines()) == sum(len(_expected(events, name)) for name in CONDITIONS)
