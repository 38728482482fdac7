"""Arguments of the job, and what it looks for at its start."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from correlation.kinds import topics_of
from spark_jobs.main import read_start, topics_with_results

if TYPE_CHECKING:
    from kafka_client.topic_offsets import KafkaOffsets


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ([], None),
        (["--rebuild"], "rebuild"),
        (["--from-now"], "now"),
        (["--from-beginning"], "beginning"),
    ],
)
def test_options_order_a_start_without_the_query_of_the_checkpoint(
    arguments: list[str], start: str | None
) -> None:
    assert read_start(arguments) == start


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rebuild", "--from-now"], "not allowed with argument --rebuild"),
        (["--reset"], "unrecognized arguments: --reset"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_start(arguments)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("begin", "end", "after", "has_results"),
    [
        (0, 0, {}, False),
        # The records are those of an aborted transaction.
        (0, 5, {0: 0}, False),
        (0, 5, {0: 3}, True),
        # None is left.
        (5, 5, {0: 0}, True),
        # The job may not read the topic.
        (0, 5, {}, True),
    ],
)
def test_topics_with_results(
    begin: int, end: int, after: dict[int, int], *, has_results: bool
) -> None:
    topics = topics_of("p")
    place = (topics.alarms, 0)
    offsets = SimpleNamespace(
        partitions=lambda: {topics.alarms: 1},
        begins=lambda _: {place: begin},
        ends=lambda _: {place: end},
        after_last_records=lambda *_: {(topics.alarms, it): at for it, at in after.items()},
    )
    found = topics_with_results(cast("KafkaOffsets", offsets), topics)
    assert found == ({topics.alarms} if has_results else set())
