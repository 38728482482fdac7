"""Explanations of pairs of token sets over REST, with and without a present list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from correlation.topk.condition import build_condition
from correlation.topk.listed import ListedPair, SetRef
from correlation.topk.results import present_lists
from tests.rest.test_resources import fresh
from tests.rest.test_topk import SECOND, put_sets, put_topk
from tests.support.kafka import Sent, create_topics, produce
from tests.support.messages import assert_names
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.rest.running import Service

pytestmark = pytest.mark.kafka


def event(name: str, second: float, tags: object = ("a", "b"), **more: object) -> dict[str, Any]:
    return {"id": name, "time": int(second * SECOND), "tags": tags, **more}


def explain(service: Service, path: str, a: object, b: object) -> dict[str, Any]:
    answer = service.client.post(f"{path}/explain", json={"a": a, "b": b})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


ABC = ("a", "b", "c")


@pytest.mark.parametrize(
    ("a", "b", "step", "names"),
    [
        (
            event("x", 0, "a b"),
            event("y", 0),
            "contract",
            ["A", "bad_tokens", "field 'tags'", "list of tokens", "a string"],
        ),
        (event("x", 0, level=2), event("y", 0, level=3), "filter", ["A", "where.a.level"]),
        (event("x", 0, level=3), event("y", 0), "filter", ["B", "where.a.level"]),
        (event("x", 0, level=3), event("x", 0, ABC, level=4), "same_event", ["the same event"]),
        (event("x", 0, [], level=3), event("y", 0, level=3), "tokens", ["A has no tokens"]),
        (event("x", 0, level=3), event("y", 0, None, level=3), "tokens", ["B has no tokens"]),
        (event("x", 0, level=3), event("y", 0, ["A", "c"], level=3), "tokens", ["share no token"]),
        (
            event("x", 10.000001, level=3),
            event("y", 0, level=3),
            "window",
            ["10.000001s apart", "expires after 10s"],
        ),
        (
            event("x", 0, level=3),
            event("y", 10, ["b", "c"], level=3),
            "minimum",
            ["similarity is 0.333333", "min_similarity is 0.5"],
        ),
        (
            event("x", 10, level=3),
            event("y", 0, ABC, level=3),
            "rank",
            ["0 of 2 pairs", "not taken effect", "ended at 1970-01-01T00:00:10Z"],
        ),
    ],
)
def test_explain_names_the_first_step_that_failed(
    service: Service, a: dict[str, Any], b: dict[str, Any], step: str, names: list[str]
) -> None:
    name = put_sets(service)
    path = put_topk(service, name, where={"a": {"level": {"min": 3}}}, min_similarity=0.5)
    answer = explain(service, path, a, b)
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", step)
    assert_names(answer["explanation"], *names)
    if step == "contract":
        assert_names(answer["explanation"], f"stream {name}")
    steps = ["contract", "filter", "same_event", "tokens", "window", "minimum", "rank"]
    assert [it["step"] for it in answer["steps"]] == steps
    failed = steps.index(step)
    skipped = [None] * (len(steps) - failed - 1)
    assert [it["passed"] for it in answer["steps"]] == [True] * failed + [False, *skipped]
    assert (answer["kind"], answer["rank"], answer["notes"]) == ("topk_similarity", None, [])


def test_explain_compares_sets_of_equal_keys_and_both_streams(service: Service) -> None:
    client = service.client
    keyed = {"partitioning": "key", "mapping": {"time": "at", "id": "n", "format": "epoch_s"}}
    a, b = put_sets(service, **keyed), put_sets(service, partitioning="key")
    path = put_topk(
        service, a, b=b, per_key=True, similarity="hamming", max_distance=1, k=1, window="1us"
    )
    record = {"record": {"n": 1, "at": 5, "tags": ["a", "b"]}, "record_key": "k"}
    answer = explain(service, path, record, event("1", 5, key="l"))
    assert answer["failed_step"] == "key"
    assert answer["explanation"].endswith("'k', 'l'")
    steps = ["contract", "key", "tokens", "window", "minimum", "rank"]
    assert [it["step"] for it in answer["steps"]] == steps
    answer = explain(service, path, record, event("1", 5, ["a", "x", "y"], key="k"))
    assert answer["explanation"] == "the distance is 3, max_distance is 1"
    answer = explain(service, path, record, event("1", 5, ABC, key="k"))
    assert answer["failed_step"] == "rank"
    assert (answer["overlap"], answer["sizes"], answer["distance"]) == (2, [2, 3], 1)
    assert answer["ends_at"] == 5 * SECOND + 1
    assert answer["a"]["tokens"] == ["a", "b"]
    missing = client.post(f"{path}/explain", json={"a": record})
    assert [it["field"] for it in missing.json()["errors"]] == ["b"]


def test_the_rank_is_not_known_without_ids(service: Service) -> None:
    path = put_topk(service, put_sets(service))
    one = {"time": 5, "tags": ["a"]}
    answer = explain(service, path, one, one)
    assert (answer["verdict"], answer["rank"]) == ("satisfied", None)
    steps = [it["step"] for it in answer["steps"]]
    assert steps == ["contract", "same_event", "tokens", "window"]
    for note, role in zip(answer["notes"], "AB", strict=True):
        assert_names(note, role, "no id", "rank")


def test_events_are_found_by_id_and_are_the_same_if_their_record_is(service: Service) -> None:
    topic = f"{service.settings.prefix}-{fresh('found')}"
    create_topics(service.settings.bootstrap, {topic: 1})
    path = put_topk(service, put_sets(service, topic=topic))
    records = [event("x", 1), event("x", 1), event("y", 2, ABC)]
    produce(service.settings.bootstrap, topic, [Sent(json.dumps(it).encode()) for it in records])
    answer = explain(service, path, {"id": "x"}, {"id": "y"})
    assert (answer["failed_step"], answer["sizes"]) == ("rank", [2, 3])
    assert answer["similarity"] == pytest.approx(2 / 3)
    answer = explain(service, path, {"id": "x"}, {"id": "x"})
    assert answer["failed_step"] == "same_event"


def write_list(
    service: Service, path: str, pairs: Sequence[ListedPair], key: str | None = None
) -> None:
    """Write a present list as the job does, and wait until the service has read it."""
    resource = service.client.get(path).json()
    condition = build_condition(resource["name"], 1, resource["document"])
    listed = present_lists(condition, 9 * SECOND, [(None if key is None else key.encode(), pairs)])
    records = [Sent(it.value, it.key) for it in listed.records(10 * SECOND)]
    topic = service.settings.topics.of(listed.channel)
    produce(service.settings.bootstrap, topic, records)
    params = {} if key is None else {"key": key}

    def is_read() -> bool:
        items = service.client.get(f"{path}/topk", params=params).json()["items"]
        return [it["older"]["id"].encode() for it in items] == [it.older.id for it in pairs]

    wait_until(is_read)


def listed_pair(older: tuple[str, int, int], newer: tuple[str, int, int]) -> ListedPair:
    """Return a pair of sets with two tokens, given as id, second and side, with one in common."""
    sets = [
        SetRef(second * SECOND, side, name.encode(), 2) for name, second, side in (older, newer)
    ]
    return ListedPair(0, 1, *sets)


def test_explain_shows_rank_and_place_of_pairs(service: Service) -> None:
    name = put_sets(service)
    path = put_topk(service, name)
    x, y, z = event("x", 1), event("y", 2, ["b", "c"]), event("z", 3, ["c", "d"])
    write_list(service, path, [listed_pair(("x", 1, 0), ("y", 2, 0))])
    present = service.client.get(f"{path}/topk").json()
    assert (present["version"], present["as_of"], present["detected_at"]) == (
        1,
        9 * SECOND,
        10 * SECOND,
    )
    assert present["items"] == [
        {
            "rank": 1,
            "similarity": 1 / 3,
            "overlap": 1,
            "sizes": [2, 2],
            "older": {"stream": name, "id": "x", "time": SECOND},
            "newer": {"stream": name, "id": "y", "time": 2 * SECOND},
        }
    ]
    # Of pairs of one stream, in any order.
    for pair_given in ((x, y), (y, x)):
        answer = explain(service, path, *pair_given)
        assert (answer["verdict"], answer["rank"]) == ("satisfied", 1)
        assert answer["explanation"] == "the pair has rank 1 of 2"
        assert answer["ends_at"] == 11 * SECOND
    answer = explain(service, path, z, y)
    assert (answer["failed_step"], answer["rank"]) == ("rank", None)
    assert_names(answer["explanation"], "missing", "1970-01-01T00:00:09Z", "a set came later")
    later = explain(service, path, y, event("v", 11, ["b"]))
    assert_names(later["explanation"], "newer set", "not taken effect")
    assert_names(later["explanation"], "1970-01-01T00:00:11Z", "as of 1970-01-01T00:00:09Z")
    full = [listed_pair(("y", 2, 0), ("z", 3, 0)), listed_pair(("x", 1, 0), ("y", 2, 0))]
    write_list(service, path, full)
    assert explain(service, path, x, y)["rank"] == 2
    answer = explain(service, path, x, event("w", 4, ["b", "e"]))
    assert_names(answer["explanation"], "can never enter", "overlap of 2 (similarity 1)", "it is 1")
    # Withdrawn, as the job does when the condition is paused.
    write_list(service, path, [])
    assert explain(service, path, x, y)["failed_step"] == "rank"


def test_lists_of_keys_are_read_by_key(service: Service) -> None:
    a, b = (put_sets(service, partitioning="key") for _ in "ab")
    path = put_topk(service, a, b=b, per_key=True, similarity="hamming")
    for key in ("k", "l/m"):
        write_list(service, path, [listed_pair(("x", 1, 1), ("x", 2, 0))], key)
    present = service.client.get(f"{path}/topk").json()
    assert (present["keys"], present["items"]) == (["k", "l/m"], [])
    (item,) = service.client.get(f"{path}/topk", params={"key": "l/m"}).json()["items"]
    assert (item["distance"], item["older"]["stream"], item["newer"]["stream"]) == (2, b, a)
    given = [event("x", 2, key="l/m"), event("x", 1, key="l/m")]
    assert explain(service, path, *given)["rank"] == 1
    # The same ids and times, in the other roles.
    given = [event("x", 1, key="l/m"), event("x", 2, key="l/m")]
    assert explain(service, path, *given)["failed_step"] == "rank"
    given = [event("x", 2, key="other"), event("x", 1, key="other")]
    assert explain(service, path, *given)["explanation"].startswith("the list has 0 of 2 pairs")


@pytest.mark.parametrize(
    "damage", [{"items": [None]}, {"items": [{"rank": 1}]}, {"items": 3}, {"as_of": "today"}]
)
def test_damaged_list_has_an_error_and_no_items(service: Service, damage: dict[str, Any]) -> None:
    path = put_topk(service, put_sets(service))
    write_list(service, path, [listed_pair(("x", 1, 0), ("y", 2, 0))])
    present = service.client.get(f"{path}/topk").json()
    (row,) = present["rows"]
    assert len(row["cells"]) == len(present["columns"])
    name = path.rsplit("/", 1)[1]
    record = {"v": 1, "kind": "topk_similarity", "condition": name, "version": 1, **damage}
    topic = service.settings.topics.channel_topic("topk.current")
    produce(service.settings.bootstrap, topic, [Sent(json.dumps(record).encode(), name.encode())])
    wait_until(lambda: service.client.get(f"{path}/topk").json()["error"] == "unreadable")
    present = service.client.get(f"{path}/topk").json()
    assert (present["items"], present["rows"]) == ([], [])
