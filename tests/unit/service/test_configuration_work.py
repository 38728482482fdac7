"""Cost of the checks of a configuration: linear, and dry runs do not delay writes."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from service.api.documents import read_resources
from service.configuration import Planner
from service.configuration_writes import ConfigurationWrites
from service.errors import MAX_PROBLEMS, InvalidConfigurationError
from service.registry import Registry
from service.settings import Settings
from service.turns import Turns
from tests.support.surveys import survey_existing
from tests.unit.service.test_configuration import pair, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from service.log import TopicLog
    from service.topic_rules import TopicRules, TopicSurvey

Resources = list[dict[str, Any]]
LIMIT = 10**9
SMALL, FACTOR = 100, 6


def chain(size: int) -> Resources:
    """Return conditions each of which reads what the one before writes."""
    return [stream(f"s{it}", topic=f"t{it}") for it in range(size)] + [
        pair(f"c{it}", a=f"s{it}", b=f"s{it}", output_topic=f"t{it + 1}") for it in range(size)
    ]


def ring(size: int) -> Resources:
    """Return a chain whose last condition writes what the first one reads."""
    back = pair("back", a="last", b="last", output_topic="t0")
    return [*chain(size), stream("last", topic=f"t{size}"), back]


def hub(size: int) -> Resources:
    """Return conditions that write to one topic, which as many conditions read."""
    writers = [pair(f"w{it}", a="x", b="x", output_topic="hub") for it in range(size)]
    readers = [pair(f"r{it}", a="y", b="y", output_topic="out") for it in range(size)]
    return [stream("x"), stream("y", topic="hub"), *writers, *readers]


def unknown(size: int) -> Resources:
    """Return conditions on streams that do not exist, but have similar names."""
    return [stream(f"known-{it}") for it in range(size)] + [
        pair(f"c{it}", a=f"unknown-{it}", b=f"unknown-{it}") for it in range(size)
    ]


def faulty(size: int) -> Resources:
    """Return conditions on a stream whose document is not valid."""
    return [stream("x", max_delay=-1), *(pair(f"c{it}", a="x", b="x") for it in range(size))]


def calls_of(resources: Resources) -> int:
    """Return the number of calls of functions while a configuration is planned."""
    wanted, planner, count = read_resources(resources), Planner(Registry(LIMIT), survey_existing), 0

    def on_event(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        planner.plan(wanted, 7, prune=False)
    except InvalidConfigurationError:
        pass
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("make", [chain, ring, hub, unknown, faulty])
def test_work_of_a_plan_is_linear(make: Callable[[int], Resources]) -> None:
    calls_of(make(SMALL))  # Fills caches.
    assert calls_of(make(SMALL * FACTOR)) < 1.25 * FACTOR * calls_of(make(SMALL))


def test_message_of_a_long_loop_is_short() -> None:
    planner = Planner(Registry(LIMIT), survey_existing)
    with pytest.raises(InvalidConfigurationError) as caught:
        planner.plan(read_resources(ring(SMALL)), 7, prune=False)
    first = caught.value.problems[0]
    assert (first.resource, first.field) == ("condition/c0", "output_topic")
    assert first.problem.endswith("c8 -> c9 -> (91 further conditions) -> c0")
    assert len(caught.value.problems) == MAX_PROBLEMS + 1


class Installation:
    """Writes of configurations without a broker; every topic exists."""

    def __init__(self, survey: Callable[..., TopicSurvey] = survey_existing) -> None:
        self.turns = Turns(0.01)
        rules = SimpleNamespace(survey=survey)
        log = SimpleNamespace(read_to_end=lambda _: 0)
        self._writes = ConfigurationWrites(
            Settings(),
            Registry(LIMIT),
            cast("TopicRules", rules),
            cast("TopicLog", log),
            self.turns,
        )

    def dry_run(self) -> list[str]:
        """Run a dry run; return the names of its resources."""
        wanted = read_resources([stream("x")])
        found = self._writes.put(wanted, lambda _: None, 7, dry_run=True)
        return [it.resource.name for it in found.changes]


def test_dry_run_does_not_wait_for_a_write() -> None:
    found = Installation()
    with found.turns.take():
        assert found.dry_run() == ["x"]


def test_write_does_not_wait_for_a_dry_run() -> None:
    def survey(uses: Iterable[tuple[str, str | None]]) -> TopicSurvey:
        # The dry run has not ended; a write begins.
        with found.turns.take():
            return survey_existing(uses)

    found = Installation(survey)
    assert found.dry_run() == ["x"]
