"""Templates over REST, on a real Kafka, and the streams that use them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from correlation.resources.records import Resource
from tests.rest.running import Service, fresh_settings, running
from tests.rest.test_resources import WRITE, head, pair, problem, put_stream, stream
from tests.support.kafka import Sent, produce, read_committed
from tests.support.records import built_in_checker

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.kafka
_NUMBERS = itertools.count()
# PTJ Example 3.
PHI = [[0, 20, 0.1], [20, 30, 0.3], [30, 40, "0.6"]]
OTHER = [["0s", "20us", "0.5"], ["20us", "30us", "0.5"]]
STORED = [
    {"lo": -40, "hi": -20, "p": "0.1"},
    {"lo": -20, "hi": -10, "p": "0.3"},
    {"lo": -10, "hi": 0, "p": "0.6"},
]


def fresh() -> str:
    """Return the path of a template that no other test of the module uses."""
    return f"/v1/templates/t{next(_NUMBERS)}"


def put(service: Service, path: str, buckets: object = PHI, **more: Any) -> httpx.Response:  # noqa: ANN401 - as httpx
    return service.client.put(path, json={"buckets": buckets}, **more)


def name_of(path: str) -> str:
    return path.rsplit("/", 1)[1]


def test_put_creates_then_makes_versions_then_writes_nothing(service: Service) -> None:
    path, client = fresh(), service.client
    created = put(service, path)
    assert (created.status_code, created.headers["Location"]) == (201, path)
    offset = int(created.headers["X-Config-Offset"])
    assert created.headers["ETag"] == f'"{offset}"'
    assert created.json()["document"] == {"buckets": STORED}
    assert (created.json()["version"], created.json()["used_by"]) == (1, {})
    # The same distribution, measured from elsewhere and in other words.
    moved = [[5, 25, 0.1], {"lo_us": 25, "hi": 35, "p": "0.30"}, ["35us", "0.045ms", 0.6]]
    for same in (moved, STORED, created.json()["document"]["buckets"]):
        again = put(service, path, same)
        assert (again.status_code, again.headers["ETag"]) == (200, created.headers["ETag"])
        assert again.json() == created.json()
    assert head(service) == offset
    changed = put(service, path, OTHER)
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert int(changed.headers["X-Config-Offset"]) == offset + WRITE
    read = client.get(path)
    assert read.json() == changed.json()
    assert read.headers["ETag"] == changed.headers["ETag"]


def test_preconditions_dry_runs_and_deletion_are_those_of_every_resource(service: Service) -> None:
    path, client, dry = fresh(), service.client, {"dry_run": "true"}
    before = head(service)
    assert problem(put(service, path, headers={"If-Match": "*"}), 412, 41201) == []
    assert put(service, path, params=dry).status_code == 201
    assert problem(client.get(path), 404, 40401) == []
    assert head(service) == before
    first = put(service, path, headers={"If-None-Match": "*"})
    assert problem(put(service, path, headers={"If-None-Match": "*"}), 412, 41201) == []
    old = {"If-Match": first.headers["ETag"]}
    assert put(service, path, OTHER, params=dry).json()["version"] == 2
    assert put(service, path, OTHER, headers=old).status_code == 200
    assert problem(client.delete(path, headers=old), 412, 41201) == []
    assert client.delete(path, params=dry).status_code == 204
    assert client.delete(path).status_code == 204
    assert problem(client.delete(path), 404, 40401) == []
    # Versions go on, so that what a stream or an alarm refers to is never another histogram.
    assert put(service, path).json()["version"] == 3


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["buckets"]),
        ({"buckets": PHI, "bucket": 1}, ["bucket"]),
        ({"buckets": [[0, 20, 0.1], [20, 30, 0.8]]}, ["buckets"]),
        ({"buckets": [[0, 20, 0.5], [21, 30, 0.5]]}, ["buckets[1].lo"]),
        ({"buckets": [[0, 20, 0.5], [20, "30", 0.5]]}, ["buckets[1].hi"]),
        ({"buckets": [{"lo": 0, "hi": 1, "p": 1, "P": 1}]}, ["buckets[0].P"]),
        ({"buckets": [["0s", "408d", 1]]}, ["buckets"]),
    ],
)
def test_template_that_is_none_names_the_field(
    service: Service, body: object, fields: list[str]
) -> None:
    path, before = fresh(), head(service)
    assert problem(service.client.put(path, json=body), 422, 42202) == fields
    assert (service.client.get(path).status_code, head(service)) == (404, before)


def test_lists_page_by_name(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        for name in "bca":
            put(service, f"/v1/templates/{name}")
        page = service.client.get("/v1/templates?limit=2").json()
        assert ([it["name"] for it in page["items"]], page["next"]) == (["a", "b"], "b")
        page = service.client.get("/v1/templates?after=b").json()
        assert ([it["name"] for it in page["items"]], page["next"]) == (["c"], None)


def test_stream_takes_the_present_version_and_keeps_it_until_it_is_written_again(
    service: Service,
) -> None:
    path, client = fresh(), service.client
    template = name_of(path)
    put(service, path)
    name = put_stream(service, templates=[template], histograms=True)
    found = f"/v1/streams/{name}"
    first = client.get(found).json()
    assert first["document"]["templates"] == [template]
    assert first["document"]["histograms"] is True
    assert first["templates"] == [{"name": template, "version": 1, "buckets": STORED}]
    # A document that is read can be put back.
    again = client.put(found, json=first["document"])
    assert (again.status_code, again.json()) == (200, first | {"warnings": []})
    put(service, path, OTHER)
    assert client.get(found).json() == first
    assert client.get(path).json()["used_by"] == {name: 1}
    status = client.get(f"{found}/status").json()["declared"]
    assert (status["templates"], status["histograms"]) == ({template: 1}, True)
    taken = client.put(found, json=first["document"]).json()
    assert taken["version"] == 2
    assert [(it["name"], it["version"]) for it in taken["templates"]] == [(template, 2)]
    assert client.get(path).json()["used_by"] == {name: 2}
    # The record holds all that the job needs.
    records = read_committed(service.settings.bootstrap, service.settings.topics.config)
    built_in_checker().check(service.settings.prefix, records)
    values = [it.value for it in records if it.key == f"stream/{name}".encode()]
    streams = [Resource.from_record(orjson.loads(it or b"")).to_stream() for it in values]
    assert [it.templates[0].histogram.length_us for it in streams] == [40, 30]
    assert streams[1].templates[0].version == 2


def test_template_in_use_cannot_be_deleted(service: Service) -> None:
    path, client = fresh(), service.client
    put(service, path)
    names = sorted(put_stream(service, templates=[name_of(path)]) for _ in range(2))
    refused = client.delete(path)
    assert problem(refused, 409, 40902) == [f"streams.{name}" for name in names]
    assert client.delete(path, params={"dry_run": "true"}).status_code == 409
    assert client.put(f"/v1/streams/{names[0]}", json=stream(service)).status_code == 200
    assert problem(client.delete(path), 409, 40902) == [f"streams.{names[1]}"]
    client.delete(f"/v1/streams/{names[1]}")
    assert client.delete(path).status_code == 204


def test_stream_that_its_templates_do_not_fit_is_refused(service: Service) -> None:
    path, client = fresh(), service.client
    template, target = name_of(path), f"/v1/streams/{name_of(path)}"
    put(service, path)

    def refused(error_code: int, **changes: object) -> list[str]:
        return problem(client.put(target, json=stream(service, **changes)), 422, error_code)

    assert refused(42203, templates=["nobody", template, "no-one"]) == [
        "templates[0]",
        "templates[2]",
    ]
    assert refused(42202, templates=["No Name"]) == ["templates[0]"]
    assert refused(42202, templates=template) == ["templates"]
    assert refused(42204, templates=[template, template]) == ["templates"]
    short = stream(service, templates=[template])
    del short["max_uncertainty"]
    answer = client.put(target, json=short | {"max_uncertainty_us": 39})
    assert problem(answer, 422, 42204) == ["max_uncertainty_us"]
    assert refused(42204, templates=[template], min_uncertainty_us=41) == ["max_uncertainty"]
    detections = {"detected": "at", "template": "by"}
    assert refused(42204, mapping=detections) == ["templates"]
    assert refused(42204, mapping={"detected": "at"}, templates=[template]) == ["mapping.template"]
    assert refused(42204, mapping={"histogram": "when"}) == ["histograms"]
    assert refused(42204, mapping={"time": "at"}, templates=[template]) == ["templates"]
    assert client.get(target).status_code == 404
    fitting = stream(service, mapping=detections, templates=[template])
    assert client.put(target, json=fitting).status_code == 201


def test_stream_of_before_there_were_shapes_is_unchanged_by_the_same_document(
    kafka_bootstrap: str,
) -> None:
    settings = fresh_settings(kafka_bootstrap)
    with running(settings) as service:
        put_stream(service)
        old = stream(service)
        del old["max_uncertainty"], old["max_delay"]
        old |= {"max_uncertainty_us": 200_000, "max_delay_us": 1_000_000, "min_uncertainty_us": 0}
        old |= {"partitioning": {"by": "key"}, "clock": "live", "mapping": None}
        record = Resource("stream", "old", 3, 0, {**old, "max_skew_us": 1_000_000})
        value = orjson.dumps(record.to_record())
        produce(kafka_bootstrap, settings.topics.config, [Sent(value, record.key)])
        answer = service.client.put("/v1/streams/old", json=stream(service))
        assert (answer.status_code, answer.json()["version"]) == (200, 3)
        assert answer.json()["templates"] == []
        answer = service.client.put("/v1/streams/old", json=stream(service, histograms=True))
        assert (answer.status_code, answer.json()["version"]) == (200, 4)


def test_condition_of_before_there_were_blocks_is_unchanged_by_the_same_document(
    kafka_bootstrap: str,
) -> None:
    settings = fresh_settings(kafka_bootstrap)
    with running(settings) as service:
        a, b = put_stream(service), put_stream(service)
        old = {"kind": "mutual_deadline", "a": a, "b": b, "window_us": 2_000_000}
        old |= {"threshold": "0.6", "report_probability": True, "algorithm": "lazy_lookup"}
        record = Resource("condition", "old", 3, 0, {**old, "output_topic": None})
        value = orjson.dumps(record.to_record())
        produce(kafka_bootstrap, settings.topics.config, [Sent(value, record.key)])
        path = "/v1/conditions/old"
        answer = service.client.put(path, json=pair(a, b))
        assert (answer.status_code, answer.json()["version"]) == (200, 3)
        answer = service.client.put(path, json=pair(a, b, block_size=100))
        assert (answer.status_code, answer.json()["version"]) == (200, 4)


def test_templates_survive_a_restart(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    with running(settings) as service:
        put(service, "/v1/templates/t")
        put(service, "/v1/templates/t", OTHER)
        name = put_stream(service, templates=["t"])
        before = [service.client.get(it).json() for it in ("/v1/templates", "/v1/streams")]
    with running(settings) as service:
        after = [service.client.get(it).json() for it in ("/v1/templates", "/v1/streams")]
        assert after == before
        assert problem(service.client.delete("/v1/templates/t"), 409, 40902) == [f"streams.{name}"]


def test_a_stream_has_more_templates_than_a_record_of_a_megabyte_holds(service: Service) -> None:
    """Longer than a Kafka client sends by default."""
    buckets = [[k * 1_000_003, (k + 1) * 1_000_003, "0.01"] for k in range(100)]
    paths = [fresh() for _ in range(300)]
    for path in paths:
        assert put(service, path, buckets).status_code == 201
    stream_name = put_stream(
        service, max_uncertainty="2min", templates=[name_of(path) for path in paths]
    )
    read = service.client.get(f"/v1/streams/{stream_name}").json()
    assert [len(it["buckets"]) for it in read["templates"]] == [100] * 300
    assert len(orjson.dumps(read["templates"])) > 1_000_000
