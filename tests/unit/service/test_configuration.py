"""Plans of configuration writes: checks of all resources together, differences, order of records.

The registry is a fold of the records that a plan needs, in their order; all topics exist.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.config_records import read_key
from correlation.resources.record_types import CONTINUED_HEADER
from correlation.resources.records import Resource, ResourceKind
from service.api.documents import read_resources
from service.configuration import Plan, Planner
from service.configuration_changes import FieldChange
from service.configuration_writes import in_order_of_writing, records_of
from service.documents.configuration import tag_of, to_documents
from service.errors import InvalidConfigurationError
from service.fold import is_continued
from service.log import LogRecord
from service.registry import Registry
from tests.support.surveys import survey_existing

Document = dict[str, Any]
LIMIT = 10**9


def template(name: str, middle: int = 5) -> Document:
    return {
        "kind": "template",
        "name": name,
        "buckets": [[0, middle, "0.5"], [middle, 9, "0.5"]],
    }


def stream(name: str, **changes: object) -> Document:
    document = {"kind": "stream", "name": name, "topic": f"of-{name}", "max_delay": "1s"}
    return document | {"max_uncertainty": "200ms"} | changes


def pair(name: str, **changes: object) -> Document:
    document = {"kind": "mutual_deadline", "name": name, "a": "x", "b": "y", "window": "2s"}
    return document | {"threshold": "0.6"} | changes


class Installation:
    """A registry and the log of its records."""

    def __init__(self) -> None:
        self.registry = Registry(LIMIT)
        self._offsets = count()

    def plan(self, resources: list[Document], *, prune: bool = False) -> Plan:
        """Return the plan of a configuration."""
        planner = Planner(self.registry, survey_existing)
        return planner.plan(read_resources(resources), 7, prune=prune)

    def put(self, resources: list[Document], *, prune: bool = False) -> Plan:
        """Apply the records of a plan, one by one."""
        plan = self.plan(resources, prune=prune)
        for record in records_of(plan.changes):
            offset = next(self._offsets)
            self.registry.apply(LogRecord(offset, record.key, record.value, 0, record.headers))
        return plan

    def documents(self) -> list[Document]:
        """Return all documents."""
        return to_documents(self.registry.configuration())


def keys(plan: Plan) -> list[tuple[str, str]]:
    return [(it.change, f"{it.resource.kind}/{it.resource.name}") for it in plan.changes]


def test_loops_of_a_configuration_are_refused() -> None:
    streams = [stream(name) for name in "xyz"]
    there = pair("there", a="x", b="x", output_topic="of-y")
    back = pair("back", a="y", b="z", output_topic="of-x")
    found = Installation()
    found.put([*streams, there])
    with pytest.raises(InvalidConfigurationError) as caught:
        found.plan([back])
    way = "back -> there -> back"
    assert [(it.resource, it.field) for it in caught.value.problems] == [
        ("condition/back", "output_topic")
    ]
    assert way in caught.value.problems[0].problem
    with pytest.raises(InvalidConfigurationError):
        Installation().plan([*streams, there, back])
    # With the condition that closes the loop, a stream is refused too.
    found.put([pair("back", a="y", b="z", output_topic="elsewhere")])
    with pytest.raises(InvalidConfigurationError) as caught:
        found.plan([stream("x", topic="elsewhere")])
    assert ("stream/x", "topic") in problems(caught)


def problems(caught: pytest.ExceptionInfo[InvalidConfigurationError]) -> list[tuple[str, str]]:
    return [(str(it.resource), it.field) for it in caught.value.problems]


FULL = [pair("near"), stream("y"), stream("x", templates=["t"]), template("t")]


def test_plan_creates_changes_leaves_and_deletes() -> None:
    found = Installation()
    everything = ["template/t", "stream/x", "stream/y", "condition/near"]
    assert keys(found.put(FULL)) == [("created", key) for key in everything]
    assert keys(found.put(FULL, prune=True)) == [("unchanged", key) for key in everything]
    plan = found.put([pair("near", threshold="0.7"), stream("y")])
    assert keys(plan) == [("unchanged", "stream/y"), ("changed", "condition/near")]
    assert plan.changes[1].fields == (FieldChange("threshold", "0.6", "0.7"),)
    plan = found.put([stream("y", mapping={"time": "t"})], prune=True)
    assert keys(plan) == [
        ("deleted", "template/t"),
        ("deleted", "stream/x"),
        ("changed", "stream/y"),
        ("deleted", "condition/near"),
    ]
    assert FieldChange("mapping.time", None, "t") in plan.changes[2].fields


def test_streams_take_the_present_versions_of_their_templates() -> None:
    found = Installation()
    found.put(FULL)
    plan = found.put([template("t", 6), FULL[2]])
    assert keys(plan) == [("changed", "template/t"), ("changed", "stream/x")]
    assert plan.changes[1].fields == (
        FieldChange("templates", [{"name": "t", "version": 1}], [{"name": "t", "version": 2}]),
    )
    # Without its stream in the configuration, the stream keeps its version.
    found.put([template("t", 7)])
    assert found.registry.template_users("t") == {"x": 2}
    assert keys(found.plan(found.documents())) == [
        ("unchanged", "template/t"),
        ("changed", "stream/x"),
        ("unchanged", "stream/y"),
        ("unchanged", "condition/near"),
    ]


@pytest.mark.parametrize(
    ("before", "given_pause", "after", "version"),
    [
        (None, None, False, 1),
        (None, True, True, 1),
        (True, None, True, 1),
        (True, False, False, 1),
        (False, True, True, 1),
    ],
)
def test_pause_changes_only_if_the_configuration_determines_it(
    before: bool | None,  # noqa: FBT001  a column of the table
    given_pause: bool | None,  # noqa: FBT001  a column of the table
    after: bool,  # noqa: FBT001  a column of the table
    version: int,
) -> None:
    found = Installation()
    found.put([stream("x"), stream("y")])
    for paused in (before, given_pause):
        found.put([pair("near") | ({} if paused is None else {"paused": paused})])
    stored = found.registry.get("condition", "near")
    assert stored is not None
    assert (stored.resource.paused, stored.resource.version) == (after, version)


def test_problems_of_all_resources_are_listed() -> None:
    found = Installation()
    found.put(FULL)
    wrong = [
        pair("near", threshold=2),
        pair("alone", b="z"),
        # Refers to a stream with problems, which hides no others.
        pair("far", a="w", window="1 fortnight"),
        stream("w", max_delay="soon"),
        stream("x", topic="no spaces", templates=["u"]),
        template("t", 20),
        template("new"),
    ]
    with pytest.raises(InvalidConfigurationError) as caught:
        found.plan(wrong)
    assert problems(caught) == [
        ("condition/near", "threshold"),
        ("condition/alone", "b"),
        ("condition/far", "window"),
        ("stream/w", "max_delay"),
        ("stream/x", "topic"),
        ("stream/x", "templates[0]"),
        ("template/t", "buckets[1].hi"),
    ]


def test_references_to_what_prune_deletes_are_refused() -> None:
    found = Installation()
    found.put(FULL)
    with pytest.raises(InvalidConfigurationError) as caught:
        found.plan([pair("near"), stream("x", templates=["t"])], prune=True)
    assert problems(caught) == [("condition/near", "b"), ("stream/x", "templates[0]")]
    assert "prune deletes" in caught.value.problems[0].remedy
    assert keys(found.plan([pair("near"), stream("x", templates=["t"])]))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (stream("x", partitioning="grid"), "conditions.near"),
        (stream("x", topic="alarms"), "topic"),
        (stream("x", max_uncertainty="1s", max_rate=10**9), "max_rate"),
    ],
)
def test_stream_change_is_checked_with_conditions_outside_the_configuration(
    change: Document, field: str
) -> None:
    found = Installation()
    found.put([stream("x"), stream("y"), pair("near", output_topic="alarms")])
    with pytest.raises(InvalidConfigurationError) as caught:
        found.plan([change])
    assert problems(caught) == [("stream/x", field)]


def test_partitioning_changes_together_with_new_conditions_only() -> None:
    found = Installation()
    found.put([stream("x"), stream("y"), pair("near")])
    streams = [stream("x", partitioning="grid"), stream("y", partitioning="grid")]
    with pytest.raises(InvalidConfigurationError) as caught:
        found.plan([*streams, pair("near", window="3s")], prune=True)
    assert problems(caught) == [("stream/x", "conditions.near"), ("stream/y", "conditions.near")]
    assert keys(found.put([*streams, pair("other")], prune=True)) == [
        ("changed", "stream/x"),
        ("changed", "stream/y"),
        ("deleted", "condition/near"),
        ("created", "condition/other"),
    ]


def test_records_are_written_so_that_references_hold() -> None:
    found = Installation()
    found.put([*FULL, pair("old")])
    plan = found.plan(
        [stream("y"), stream("z", templates=["u"]), pair("far", a="y", b="z"), template("u")],
        prune=True,
    )
    order = [
        f"{it.change} {it.resource.kind}/{it.resource.name}"
        for it in in_order_of_writing(plan.changes)
    ]
    assert order == [
        "deleted condition/near",
        "deleted condition/old",
        "created template/u",
        "created stream/z",
        "created condition/far",
        "deleted stream/x",
        "deleted template/t",
    ]


def test_records_of_a_transaction_are_applied_together() -> None:
    registry = Registry(LIMIT)
    continued = ((CONTINUED_HEADER, b"1"),)
    assert (is_continued(continued), is_continued((("other", None),))) == (True, False)

    def apply(offset: int, name: str, *, last: bool) -> list[str]:
        resource = Resource("template", name, 1, 0, {"buckets": template(name)["buckets"]})
        value = orjson.dumps(resource.to_record())
        headers = () if last else continued
        registry.apply(LogRecord(offset, resource.key, value, 0, headers))
        return sorted(it.name for it in registry.configuration())

    assert apply(0, "a", last=True) == ["a"]
    assert apply(1, "b", last=False) == ["a"]
    assert apply(2, "c", last=False) == ["a"]
    assert apply(3, "d", last=True) == ["a", "b", "c", "d"]
    # Kafka has removed the last record of this transaction: the end of the topic completes it.
    assert apply(5, "e", last=False) == ["a", "b", "c", "d"]
    registry.complete()
    assert sorted(it.name for it in registry.configuration()) == ["a", "b", "c", "d", "e"]
    registry.complete()


NAMES = st.sampled_from(["x", "y", "z"])


@st.composite
def configurations(draw: st.DrawFn) -> list[Document]:
    """Draw a consistent configuration of up to three resources of each kind, in any order."""
    templates = draw(st.sets(NAMES))
    streams = draw(st.sets(NAMES))
    resources = [template(name, draw(st.integers(1, 8))) for name in sorted(templates)]
    for name in sorted(streams):
        used = draw(
            st.lists(st.sampled_from(sorted(templates)), unique=True) if templates else st.just([])
        )
        delay = f"{draw(st.integers(1, 3))}s"
        resources.append(stream(name, templates=sorted(used), max_delay=delay))
    for name in sorted(draw(st.sets(NAMES)) if streams else ()):
        a, b = (draw(st.sampled_from(sorted(streams))) for _ in "ab")
        paused = draw(st.booleans())
        window = f"{draw(st.integers(1, 3))}s"
        resources.append(pair(name, a=a, b=b, window=window, paused=paused))
    return draw(st.permutations(resources))


@given(configurations(), configurations())
def test_pruned_write_leaves_exactly_the_configuration(
    first: list[Document], second: list[Document]
) -> None:
    both, alone = Installation(), Installation()
    both.put(first, prune=True)
    before = {(it["kind"], it["name"]): it for it in both.documents()}
    plan = both.put(second, prune=True)
    alone.put(second)
    after = {(it["kind"], it["name"]): it for it in alone.documents()}
    assert both.documents() == alone.documents()
    assert tag_of(both.documents()) == tag_of(alone.documents())
    # The plan is the difference of the two; a stream also changes with its templates.
    changed = {key for key in before.keys() & after.keys() if before[key] != after[key]}
    templates = {name for kind, name in changed if kind == "template"}
    changed |= {
        key
        for key in before.keys() & after.keys()
        if key[0] == "stream" and templates & set(after[key]["templates"])
    }
    expected = {
        "created": after.keys() - before.keys(),
        "deleted": before.keys() - after.keys(),
        "changed": changed,
        "unchanged": (before.keys() & after.keys()) - changed,
    }
    for change, wanted in expected.items():
        assert {
            (str(it.resource.document.get("kind", it.resource.kind)), it.resource.name)
            for it in plan.changes
            if it.change == change
        } == wanted
    # A second write of what is there changes nothing.
    assert records_of(both.plan(both.documents(), prune=True).changes) == []


@given(configurations(), configurations())
def test_references_hold_after_each_record(first: list[Document], second: list[Document]) -> None:
    found = Installation()
    found.put(first)
    known: dict[ResourceKind, set[str]] = {"template": set(), "stream": set(), "condition": set()}
    for it in found.registry.configuration():
        known[it.kind].add(it.name)
    used = {f"{it.kind}/{it.name}": it for it in found.registry.configuration()}
    for record in records_of(found.plan(second, prune=True).changes):
        kind, name = read_key(record.key)
        if record.value is None:
            known[kind].remove(name)
            used.pop(f"{kind}/{name}")
        else:
            known[kind].add(name)
            used[f"{kind}/{name}"] = Resource.from_record(orjson.loads(record.value))
        for it in used.values():
            if it.kind == "condition":
                assert {it.document["a"], it.document["b"]} <= known["stream"]
