"""Malformed requests: no status 500, and problem bodies that name the field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    import httpx

    from tests.rest.running import Service

pytestmark = pytest.mark.kafka
JSON = {"Content-Type": "application/json"}
PAIR = b'{"kind":"mutual_deadline","a":"s","b":"s","window":"2s","threshold":%s}'

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**60), max_value=10**60)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["2s", "-1us", "99999d", "0.5", "x", "key", "UTC", "../x", "\0", "é😀", "a.b"]
    )
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "a",
                    "b",
                    "window",
                    "window_us",
                    "window_ms",
                    "threshold",
                    "topic",
                    "max_uncertainty",
                    "max_uncertainty_s",
                    "max_delay",
                    "mapping",
                    "time",
                    "before",
                    "earliest",
                    "latest",
                    "partitioning",
                    "by",
                    "groups",
                    "timezone",
                    "format",
                    "condition",
                    "rates",
                    "output_topic",
                    "lower_us",
                    "upper_us",
                    "horizon",
                    "deadline",
                    "id",
                    "key",
                    "record",
                    "event",
                    "record_timestamp",
                    "since",
                    "templates",
                    "histograms",
                    "buckets",
                    "lo",
                    "hi",
                    "p",
                ]
            )
            | st.text(max_size=5),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)
PATHS = st.sampled_from(
    [
        "/v1/streams/x",
        "/v1/conditions/x",
        "/v1/templates/x",
        "/v1/conditions:validate",
        "/v1/conditions/known/explain",
    ]
)


@pytest.fixture(autouse=True, scope="module")
def known(service: Service) -> None:
    """Register a condition, so that there is something to explain."""
    document = {
        "topic": f"{service.settings.prefix}-events",
        "max_uncertainty": "2s",
        "max_delay": "1s",
    }
    service.client.put("/v1/streams/s", json=document)
    pair = {"kind": "mutual_deadline", "a": "s", "b": "s", "window": "2s", "threshold": 0.5}
    assert service.client.put("/v1/conditions/known", json=pair).is_success


def send(client: httpx.Client, path: str, body: bytes) -> httpx.Response:
    method = "POST" if path.endswith(("validate", "explain")) else "PUT"
    return client.request(method, path, content=body, headers=JSON, params={"dry_run": "true"})


def check(answer: httpx.Response) -> None:
    """Accept success, or a problem body."""
    if answer.is_success:
        return
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(path=PATHS, body=st.binary(max_size=300))
def test_any_bytes_get_a_problem(client: httpx.Client, path: str, body: bytes) -> None:
    check(send(client, path, body))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(path=PATHS, document=DOCUMENTS)
def test_any_json_gets_an_answer(client: httpx.Client, path: str, document: Any) -> None:  # noqa: ANN401  any JSON
    check(send(client, path, json.dumps(document).encode()))


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (PAIR % b"0.70000000000000000001", 422, "threshold"),
        # More digits than Decimal keeps by itself.
        (PAIR % b'"0.70000000000000000000000000000000000000001"', 422, "threshold"),
        (PAIR % b"1e-400", 422, "threshold"),
        (PAIR % b"NaN", 422, "threshold"),
        (PAIR % b"-Infinity", 422, "threshold"),
        (PAIR % (b"9" * 5000), 422, "threshold"),
        (PAIR % (b"1e" + b"9" * 50), 422, "threshold"),
        (PAIR % b'"\\ud800"', 422, "threshold"),
        (PAIR % b'"0.5", "threshold": 0.6', 422, "threshold"),
        (PAIR % b'0.5, "\\u0000": 1', 422, "\0"),
        (PAIR % b'0.5, "output_topic": "\\u0000"', 422, "output_topic"),
        (PAIR % (b'0.5, "x": ' + b"[" * 50_000), 422, None),
        (PAIR % (b'0.5, "x": "' + b"x" * 1_200_000 + b'"'), 413, None),
        (b"\xfe\xff\x00{", 422, None),
        ("{}".encode("utf-16"), 422, None),
        (b"", 422, ""),
    ],
    ids=range(16),
)
def test_nasty_body_is_refused_with_its_field(
    client: httpx.Client, body: bytes, status: int, field: str | None
) -> None:
    answer = send(client, "/v1/conditions/c", body)
    assert answer.status_code == status, answer.text
    check(answer)
    fields = [it["field"] for it in answer.json()["errors"]]
    assert fields == ([] if field is None else [field])


@pytest.mark.parametrize(
    "media_type",
    ["", "text/plain", "application/xml", "application/x-www-form-urlencoded", "json", "\xff"],
)
def test_other_media_type_is_refused(client: httpx.Client, media_type: str) -> None:
    headers = [(b"Content-Type", media_type.encode("latin-1"))] if media_type else []
    answer = client.put("/v1/conditions/c", content=PAIR % b"0.5", headers=headers)
    assert (answer.status_code, answer.json()["error_code"]) == (415, 41501)


@pytest.mark.parametrize(
    "headers",
    [
        {"If-Match": "\xff\xfe".encode("latin-1")},
        {"If-Match": b'"' * 5000},
        {"If-None-Match": b",,,"},
        {"Accept": b"nothing/at all; q=x"},
        {"Content-Type": b"application/json; charset=\xff"},
        {"X-Forwarded-For": b"\xff"},
        {"Host": b"\xff"},
        {"Content-Type": b"application/json", "Content-Encoding": b"gzip"},
    ],
)
def test_weird_headers_get_an_answer(client: httpx.Client, headers: dict[str, bytes]) -> None:
    for method, path in (("PUT", "/v1/conditions/c"), ("GET", "/v1/job"), ("GET", "/metrics")):
        raw = [(name.encode(), value) for name, value in headers.items()]
        check(client.request(method, path, content=b"{}", headers=raw))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/streams/%00",
        "/v1/streams/%ff%fe",
        "/v1/streams/..%2f..%2fetc",
        "/v1/streams/" + "x" * 64,
        "/v1/streams/UPPER",
        "/v1/streams/%F0%9F%98%80",
        "/v1/streams/",
        "/v1/streams?limit=1e99&after=%00",
        "/v1/streams?limit=99999999999999999999999",
        "/v1/streams?after=" + "x" * 64,
        "/v1/streams?limit=%ff",
        "/v1/conditions:destroy",
        "/%2e%2e",
    ],
)
def test_weird_paths_are_refused_with_a_problem(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in {404, 422}
    check(answer)


def test_method_that_is_not_there_lists_those_that_are(client: httpx.Client) -> None:
    for path, allowed in (
        ("/v1/streams/x", "DELETE, GET, PUT"),
        ("/v1/streams", "GET"),
        ("/v1/conditions:validate", "POST"),
        ("/v1/conditions/x/pause", "PUT"),
        ("/livez", "GET"),
    ):
        answer = client.patch(path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
        assert answer.json()["error_code"] == 40500
