"""Fixtures of formats: one for each format, and no guess about an unknown one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from correlation.config_records import parse_config_record
from correlation.engine.origin import Origin
from correlation.engine.published import Published
from correlation.engine.rebuilding import rebuild_program
from correlation.errors import UnknownRecordVersionError
from service.log import LogRecord
from service.metrics import MetricsView
from spark_jobs.sink.marker import read_marks
from spark_jobs.worker.slot_records import generation_of, read_generations
from tests.support.formats import (
    FIXTURES,
    FORMATS,
    Fixture,
    Line,
    present_formats,
    undeclared_versions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.formats import Line as StoredLine

ROOT = Path(__file__).parents[3]
PACKAGES = ("correlation", "spark_jobs", "service", "cli", "kafka_client")
# Versions of records that no later version of this software reads again, and of other files.
OTHERS = {
    # Results.
    "correlation.topk.change_format:VERSION",
    "correlation.result_format:LIST_VERSION",
    "correlation.timing.alarm_format:ALARM_VERSION",
    "correlation.timing.alarm_format:FACTORED_VERSION",
    "correlation.event_query.alarm_format:ALARM_VERSION",
    # Shares that another version leaves out.
    "spark_jobs.sink.kept_shares:_VERSION",
    # Files of the checkpoint, which a rebuild replaces.
    "spark_jobs.driver.config_topic:_VERSION",
    "spark_jobs.driver.rebuild:_VERSION",
    "spark_jobs.driver.layout:_VERSION",
    "spark_jobs.driver.replanning:_VERSION",
    "spark_jobs.driver.losses:_VERSION",
    "spark_jobs.driver.streams_in_force:_VERSION",
    # Records for people and for clients; a backup has a version, and the records of the topics.
    "service.audit:VERSION",
    "service.asyncapi:_VERSION",
    "service.alarms.positions:_VERSION",
    "cli.client.backup:_VERSION",
    # Of Java.
    "cli.stack.java:_VERSION",
}
# Operators whose state has a version, by the condition, and that of an unknown version.
STATES: dict[str, Callable[[bytes], bytes]] = {
    "best": lambda it: it.replace(b'"v": 2', b'"v": 9'),
    "unmatched": lambda it: it.replace(b'"v": 2', b'"v": 9'),
    "query": lambda it: it.replace(b"CoinQry1", b"CoinQry9"),
    "blocks": lambda it: it.replace(b"CoinBlk2", b"CoinBlk9"),
}


@pytest.fixture(name="present", scope="module")
def make_present() -> Fixture:
    """Return the fixture of the formats of this version."""
    found = [Fixture.read(folder) for folder in FIXTURES.iterdir()]
    return next(it for it in found if it.formats == present_formats())


def values_of(fixture: Fixture, topic: str) -> dict[bytes, bytes]:
    """Return the newest value of each key of a compacted topic."""
    found = {it.key or b"": it.value for it in fixture.topics[f"PREFIX.{topic}"]}
    return {key: value for key, value in found.items() if value is not None}


def outdated(value: bytes) -> bytes:
    """Return a record as a later version of this software may write it."""
    record: dict[str, Any] = orjson.loads(value)
    return orjson.dumps({**record, "v": record["v"] + 1})


def test_formats_of_this_version_have_a_fixture() -> None:
    known = [Fixture.read(folder).formats for folder in FIXTURES.iterdir()]
    assert present_formats() in known, "make one (CONTRIBUTING.md, When a stored format changes)"


def test_no_version_is_left_out() -> None:
    found = undeclared_versions(ROOT / name for name in PACKAGES)
    assert len(found) == len(set(found))
    assert set(found) == {*FORMATS.values()} | OTHERS
    assert not {*FORMATS.values()} & OTHERS


def test_registration_of_an_unknown_version_is_refused(present: Fixture) -> None:
    for key, value in values_of(present, "config").items():
        assert parse_config_record(key, value, orjson.loads).key == key
        with pytest.raises(UnknownRecordVersionError, match=r"has version 2; .* reads version 1"):
            parse_config_record(key, outdated(value), orjson.loads)


def test_state_of_an_unknown_version_is_refused(present: Fixture) -> None:
    values = values_of(present, "state")
    (generation,) = read_generations(values)
    assert (generation.is_complete, generation.slots) == (True, 2)
    changed = [key for key in values if key in {b"0/0", b"0/1"}]
    assert len(changed) == 2
    for key in changed:
        with pytest.raises(UnknownRecordVersionError, match="version 2; this software reads 1"):
            read_generations({**values, key: outdated(values[key])})


def test_mark_of_an_unknown_version_is_refused(present: Fixture) -> None:
    values = values_of(present, "state")
    assert set(read_marks(values).values()) != {0}
    marks = [key for key in values if generation_of(key) is None]
    assert len(marks) == 4
    for key in marks:
        with pytest.raises(UnknownRecordVersionError, match="version 2"):
            read_marks({**values, key: outdated(values[key])})


@pytest.mark.parametrize("condition", sorted(STATES))
def test_operator_state_of_an_unknown_version_is_refused(present: Fixture, condition: str) -> None:
    streams = present.streams()
    partitions = {name: len(present.ends[it.topic]) for name, it in streams.items()}
    (generation,) = read_generations(values_of(present, "state"))
    held = [
        it.published
        for it in generation.records.values()
        if condition in it.published.position["operators"]
    ]
    assert held
    for published in held:
        # The events are not read: only the states are.
        assert rebuild_program(published, {}, streams, partitions, Origin())
        operators = published.position["operators"]
        state = bytes.fromhex(operators[condition])
        newer = STATES[condition](state)
        assert newer != state
        position = {
            **published.position,
            "operators": {**operators, condition: newer.hex()},
        }
        with pytest.raises(UnknownRecordVersionError, match="version 9"):
            rebuild_program(
                Published(position, published.totals), {}, streams, partitions, Origin()
            )


def test_metrics_of_an_unknown_version_are_counted_and_change_nothing(present: Fixture) -> None:
    values = values_of(present, "metrics")
    assert values.keys() == {b"slot/0", b"slot/1", b"job", b"merged"}
    view = MetricsView()
    for place, (key, value) in enumerate(values.items()):
        view.apply(LogRecord(place, key, outdated(value), 0))
        assert view.unreadable == place + 1
    for place, (key, value) in enumerate(values.items()):
        view.apply(LogRecord(place, key, value, 0))
    assert view.unreadable == len(values)


def test_fixture_is_read_as_it_was_written(tmp_path: Path) -> None:
    compact, other, broken = b'{"a":1}', b'{"a": 1}', b'{"a":'
    lines: list[StoredLine] = [
        Line(0, place, 7, b"k", value, {"h": b"x"})
        for place, value in enumerate((compact, other, broken, b"1", b"", b"crash-a id", None))
    ]
    fixture = Fixture({"f": "1"}, {"crash.config": [7]}, ["crash.config"], {"crash-a": lines}, {})
    folder = tmp_path / "1"
    fixture.write(folder, "crash", {"crash-a": "id"})
    assert [it.name for it in folder.glob("*.jsonl")] == ["PREFIX-a.jsonl"]
    text = (folder / "PREFIX-a.jsonl").read_text()
    assert '"value":{"a":1}' in text
    assert "PREFIX-a ID-OF-PREFIX-a" in text
    assert Fixture.read(folder, "crash", {"crash-a": "id"}) == fixture
