"""Event queries over REST: registration, problems of all kinds, plans and pictures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from tests.rest.running import Service
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

pytestmark = pytest.mark.kafka
ALARM = """\
DETECT Alarm {area {var X}}
ON event s: Smoke {area {var X}}
   not event r: Report {area {var X}}
WHERE s.rt.end <= r.rt.begin,
      r.rt.begin <= s.rt.end + 5 min
END"""
ATTRIBUTES = {
    "area": "area",
    "level": {"path": "level", "type": "integer"},
    "heat": {"path": "heat", "type": "number"},
    "loud": {"path": "loud", "type": "boolean"},
}
INSTANTS = {"max_uncertainty": "0s", "attributes": ATTRIBUTES}
STREAMS: Mapping[str, Mapping[str, Any]] = {
    "smoke": INSTANTS,
    "report": INSTANTS,
    "door": INSTANTS | {"attributes": {"area": {"path": "area", "type": "integer"}}},
    "grid": INSTANTS | {"partitioning": {"by": "grid", "groups": 3}},
    "grid-2": INSTANTS | {"partitioning": {"by": "grid", "groups": 3}},
    "one-cell": INSTANTS | {"partitioning": "grid"},
    "vague": {"max_uncertainty": "2s", "attributes": ATTRIBUTES},
    "visit": {"mapping": {"begin": "from", "end": "to"}, "attributes": ATTRIBUTES},
    "shift": {"mapping": {"begin": "from", "end": "to"}, "max_length": "8h"},
    "quick": INSTANTS | {"max_rate": 1_000_000},
}
WITHIN = "r.rt.end >= s.rt.end, r.rt.end <= s.rt.end + 5 min"


@pytest.fixture(scope="module", autouse=True)
def _streams(service: Service) -> None:
    for name, more in STREAMS.items():
        put_stream(service.client, name, {**more})


def put_stream(client: httpx.Client, name: str, document: Mapping[str, Any]) -> httpx.Response:
    found = {"topic": f"events-{name}", "max_delay": "1s", **document}
    return client.put(f"/v1/streams/{name}", json=found)


def query(query: object, **more: object) -> dict[str, Any]:
    return {"kind": "event_query", "query": query, **more}


def absence(
    positive: str = "Smoke", negated: str = "Report", where: str = WITHIN, detect: str = "Alarm"
) -> str:
    return f"DETECT {detect} ON event s: {positive} not event r: {negated} WHERE {where} END"


def problems(answer: httpx.Response, status: int = 422) -> list[dict[str, Any]]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = list(answer.json()["errors"])
    assert all(it["problem"] and it["remedy"] for it in found)
    return found


def said(answer: httpx.Response, status: int = 422) -> dict[str, str]:
    return {it["field"]: f"{it['problem']}; {it['remedy']}" for it in problems(answer, status)}


def test_query_is_stored_as_written_and_an_unchanged_one_is_not_written(
    client: httpx.Client,
) -> None:
    path = "/v1/conditions/stored"
    created = client.put(path, json=query(ALARM))
    assert created.status_code == 201, created.text
    expected = {
        "kind": "event_query",
        "query": ALARM,
        "types": None,
        "threshold": None,
        "output_topic": None,
    }
    assert created.json()["document"] == expected
    again = client.put(path, json=created.json()["document"])
    assert (again.status_code, again.headers["ETag"]) == (200, created.headers["ETag"])
    assert client.get(path).json() | {"warnings": []} == created.json() == again.json()
    # Another layout of the same query is another document.
    changed = client.put(path, json=query(ALARM.replace("\n", " ")))
    assert changed.headers["ETag"] != created.headers["ETag"]


def test_another_constant_that_python_takes_as_equal_is_a_change(client: httpx.Client) -> None:
    form = query_to_document(parse_query("DETECT A {alert {true}} ON event s: Smoke END"))
    path, tags = "/v1/conditions/constants", []
    for constant in ("true", "1", "true", "true"):
        written = json.dumps(form).replace('"constant": true', f'"constant": {constant}')
        assert f'"constant": {constant}' in written
        body = f'{{"kind": "event_query", "query": {written}}}'
        headers = {"content-type": "application/json"}
        answer = client.put(path, content=body, headers=headers)
        assert answer.status_code in {200, 201}, answer.text
        assert f'"constant":{constant}' in client.get(path).text
        tags.append(answer.headers["ETag"])
    assert tags[0] != tags[1] != tags[2] == tags[3]


def test_json_form_is_stored_in_canonical_form(client: httpx.Client) -> None:
    text = """DETECT A ON event s: Smoke {heat {>= 0.5}, area {"x"}}
    WHERE s.rt.end > s.rt.begin - 1 s END"""
    form = query_to_document(parse_query(text))
    written = json.dumps(form).replace('{"number": "0.5"}', "0.50")
    assert '"constant": 0.50' in written
    body = f'{{"kind": "event_query", "query": {written}}}'
    created = client.put(
        "/v1/conditions/json-form", content=body, headers={"Content-Type": "application/json"}
    )
    assert created.status_code == 201, created.text
    assert created.json()["document"]["query"] == form
    again = client.put("/v1/conditions/json-form", json=query(form))
    assert again.headers["ETag"] == created.headers["ETag"]


def test_deepest_query_is_accepted_as_text_and_as_json(client: httpx.Client) -> None:
    inner = "s.rt.end > s.rt.begin - 1 s"
    for depth in range(15):
        word = "or" if depth % 2 else "and"
        inner = f"({inner} {word} s.rt.end >= s.rt.begin)"
    text = f"DETECT A ON event s: Smoke WHERE {inner} END"
    form = query_to_document(parse_query(text))
    for name, given in (("deep-text", text), ("deep-json", form)):
        answer = client.put(f"/v1/conditions/{name}", json=query(given))
        assert answer.status_code == 201, answer.text
    plans = [client.get(f"/v1/conditions/deep-{it}/plan").json() for it in ("text", "json")]
    assert plans[0] == plans[1]


def test_a_query_without_any_result_has_a_warning(client: httpx.Client) -> None:
    text = "DETECT A ON event s: Smoke WHERE s.rt.end < s.rt.begin END"
    (warning,) = client.put("/v1/conditions/never", json=query(text)).json()["warnings"]
    assert_names(warning, "never has a result")
    validated = client.post("/v1/conditions:validate", json={"condition": query(text)}).json()
    assert validated["derived"]["warnings"] == [warning]


def test_grammar_error_names_its_place(client: httpx.Client) -> None:
    text = ALARM.replace("<= r.rt.begin,", "=< r.rt.begin,")
    answer = client.put("/v1/conditions/bad", json=query(text))
    (found,) = problems(answer)
    assert found["field"] == "query"
    assert found["problem"].startswith("line 4, column 16: found")
    assert found["place"] == {
        "line": 4,
        "column": 16,
        "found": '"=<"',
        "expected": found["place"]["expected"],
        "excerpt": "WHERE s.rt.end =< r.rt.begin,\n               ^",
    }
    assert "a comparison (<, <=, >, >= or =)" in found["place"]["expected"]
    validated = client.post("/v1/conditions:validate", json={"condition": query(text)}).json()
    assert validated["valid"] is False
    assert validated["errors"] == [found]
    assert client.get("/v1/conditions/bad").status_code == 404


def test_all_problems_of_a_query_and_its_document_are_listed(client: httpx.Client) -> None:
    text = """DETECT Alarm {area {var Z}}
ON event s: Smoke {area {var X}} event s: Heat
   not event r: Report {level {var Y}}
WHERE q.rt.end <= r.rt.begin END"""
    document = query(text, threshold=70, output_topic="bad topic", types={"Smoke": "Bad Name"})
    found = problems(client.put("/v1/conditions/bad", json=document))
    assert [it["place"]["line"] for it in found if it["field"] == "query"] == [1, 2, 3, 4]
    assert {it["field"] for it in found} == {"query", "threshold", "output_topic", "types.Smoke"}


def test_json_form_names_the_path_of_its_problem(client: httpx.Client) -> None:
    form = query_to_document(parse_query(ALARM))
    form["events"][0]["alias"] = "end"
    form["where"]["and"][1]["operator"] = "!="
    found = said(client.put("/v1/conditions/bad", json=query(form)))
    assert list(found) == ["query.where.and[1].operator"]
    assert_names(found["query.where.and[1].operator"], "comparison", "<, <=, >, >=, =")
    form["where"]["and"][1]["operator"] = "<="
    found = said(client.put("/v1/conditions/bad", json=query(form)))
    assert '"end" is a keyword' in found["query.events[0].alias"]
    form["colour"] = "red"
    assert (
        "unknown field" in said(client.put("/v1/conditions/bad", json=query(form)))["query.colour"]
    )


NESTED = "(" * 100 + "s.rt.end > s.rt.begin" + ")" * 100


@pytest.mark.parametrize(
    ("given", "field", "names"),
    [
        (None, "query", ["string or an object"]),
        (7, "query", ["string or an object"]),
        ([ALARM], "query", ["string or an object"]),
        ("", "query", ["line 1, column 1", "expected DETECT"]),
        ("x" * 70_000, "query", ["at most 65,536 characters"]),
        (f"DETECT A ON event s: Smoke WHERE {NESTED} END", "query", ["at most 32 levels"]),
        ({"events": []}, "query.detect", ["missing"]),
        (
            ALARM.replace("Report {area {var X}}", "Report {area {var Y}}"),
            "query",
            ['"Y"', "only in negated events"],
        ),
        (
            """DETECT A ON event s: Smoke not event r: Report not event q: Report
            WHERE r.rt.end <= q.rt.begin END""",
            "query",
            ["two negated events", '"r" and "q"'],
        ),
        ("DETECT A ON not event r: Report END", "query", ["one positive event"]),
        ('DETECT A ON event s: Smoke {area {"x}} END', "query", ["string is not valid"]),
    ],
)
def test_bad_query_is_refused(
    client: httpx.Client, given: object, field: str, names: list[str]
) -> None:
    found = said(client.put("/v1/conditions/bad", json=query(given)))
    assert list(found) == [field]
    assert_names(found[field], *names)


def test_huge_bodies_are_refused(client: httpx.Client) -> None:
    huge = client.put("/v1/conditions/bad", json=query("x" * 1_100_000))
    assert problems(huge, 413) == []
    long = client.put("/v1/conditions/bad", json=query("x" * 1_000_000))
    assert "at most 65,536 characters" in said(long)["query"]
    form: dict[str, Any] = {"left": {}, "operator": "<=", "right": {}}
    for _ in range(100):
        form = {"and": [form]}
    nested = client.put("/v1/conditions/bad", json=query({"where": form}))
    assert nested.status_code == 422
    assert "nested deeper than 80 levels" in nested.json()["detail"]


@pytest.mark.parametrize(
    ("document", "field", "names"),
    [
        (query(absence("Flame", "Report")), "query", ["stream 'flame'", "exist"]),
        (query(absence(), types={"Smoke": "flame"}), "types.Smoke", ["'flame'", "exist"]),
        (query(absence(), types={"Smok": "smoke"}), "types.Smok", ["did you mean Smoke?"]),
        (query(absence(), types={"Smoke": 7}), "types.Smoke", ["string"]),
        (query(absence(), types=["smoke"]), "types", ["object"]),
        (query(absence("SMOKE.x-", "Report")), "query", ["stream 'smoke.x-'", "exist"]),
        (query(absence("Smoke {room {3}}")), "query", ["smoke", "attribute room"]),
        (query(absence("Smoke {aera {3}}")), "query", ["did you mean area?"]),
        (query(absence("Smoke {area {3}}")), "query", ["type string", "with a number"]),
        (query(absence("Smoke {loud {1}}")), "query", ["type boolean", "with a number"]),
        (
            query(absence("Smoke {level {true}}")),
            "query",
            ["with true or false", "write a number"],
        ),
        (query(absence('Smoke {level {"3"}}')), "query", ["with a string"]),
        (
            query(absence("Smoke {area {var X}}", "Door {area {var X}}")),
            "query",
            ["variable X", "type string", "event s: attribute area"],
        ),
        (query(absence("Smoke", "Grid")), "query", ["events do not meet"]),
        (query(absence("Grid", "Grid-2")), "query", ["only two events", "cell"]),
        (
            query(absence("Smoke", "Report", "r.rt.end >= s.rt.end")),
            "query",
            ["`r.rt.begin <= s.rt.end + C`"],
        ),
        (query("DETECT A ON event s: Smoke event t: Report END"), "query", ["kept forever"]),
        (query(absence(), threshold=0.9), "threshold", ["no meaning"]),
        (query(absence("Smoke", "Vague")), "threshold", ["missing", "instants of vague"]),
        (
            query(
                "DETECT A ON event s: Vague event t: Vague WHERE s.rt.end = t.rt.end END",
                threshold=0.9,
            ),
            "query",
            ["at most one", "positive event"],
        ),
        (query(absence(), output_topic="events-smoke"), "output_topic", ["stream smoke"]),
        (query(absence("Quick")), "query", ["would buffer"]),
    ],
)
def test_query_that_its_streams_do_not_support_is_refused(
    client: httpx.Client, document: dict[str, Any], field: str, names: list[str]
) -> None:
    answer = client.put("/v1/conditions/bad", json=document)
    found = said(answer)
    assert list(found) == [field]
    assert_names(found[field], *names)
    validated = client.post("/v1/conditions:validate", json={"condition": document}).json()
    renamed = json.loads(
        json.dumps(answer.json()["errors"]).replace("condition bad", "condition validated")
    )
    assert validated["errors"] == renamed


def test_every_unbounded_input_is_named(client: httpx.Client) -> None:
    text = "DETECT A ON event s: Smoke not event r: Report not event v: Visit END"
    found = problems(client.put("/v1/conditions/bad", json=query(text)))
    # Each is kept forever, and may come at any time after the result.
    assert [it["place"]["column"] for it in found] == [38, 38, 58, 58]
    for it, alias in zip(found, "rrvv", strict=True):
        assert f"event {alias} of" in it["problem"]
    assert {it["field"] for it in found} == {"query"}


def test_streams_that_last_and_one_cell_and_one_uncertain_stream_are_accepted(
    client: httpx.Client,
) -> None:
    lasting = absence("Smoke", "Shift", "r.rt.begin <= s.rt.end, s.rt.end <= r.rt.end")
    for name, document in {
        "lasting": query(lasting),
        "one-cell": query(absence("One-cell", "One-cell")),
        "uncertain": query(absence("Vague", "Report"), threshold="0.9"),
        "mapped": query(absence("Rauch", "Meldung"), types={"Rauch": "smoke", "Meldung": "report"}),
    }.items():
        answer = client.put(f"/v1/conditions/{name}", json=document)
        assert answer.status_code == 201, answer.text


def test_threshold_is_required_and_only_one_integral_is_supported(client: httpx.Client) -> None:
    vague = absence("Vague", "Vague")
    missing = said(client.put("/v1/conditions/bad", json=query(vague)))
    assert missing["threshold"].startswith("is missing: ")
    assert_names(missing["threshold"], "vague", "uncertain")
    created = client.put("/v1/conditions/vague-absence", json=query(vague, threshold="0.75"))
    assert created.status_code == 201, created.text
    assert client.get("/v1/conditions/vague-absence").json()["document"]["threshold"] == "0.75"
    two = "DETECT A ON event s: Vague event t: Vague WHERE s.rt.end = t.rt.end END"
    found = said(client.put("/v1/conditions/bad", json=query(two, threshold="0.5")))
    assert found["query"].startswith("line 1, column 34: ")
    assert_names(found["query"], "events s and t", "uncertain instants")
    joint = f"""DETECT A ON event s: Vague event d: Smoke not event r: Vague
    WHERE d.rt.end >= s.rt.end, d.rt.end <= s.rt.end + 1 min, {WITHIN}, r.rt.end < d.rt.end END"""
    created = client.put("/v1/conditions/vague-joint", json=query(joint, threshold="0.5"))
    assert created.status_code == 201, created.text


def test_uncertain_combination_is_explained_with_its_exact_probability(
    client: httpx.Client,
) -> None:
    document = query(absence("Vague", "Report"), threshold="0.75")
    assert client.put("/v1/conditions/chance", json=document).status_code == 201
    event = {"id": "v1", "key": "k", "earliest": 0, "latest": 2_000_000}
    report = {"id": "r1", "key": "k", "earliest": 1_500_000, "latest": 1_500_000}
    asked = {"events": {"s": event, "r": report}}
    answer = client.post("/v1/conditions/chance/explain", json=asked).json()
    # The report is at or after three in four of the possible times.
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", "threshold")
    assert answer["absence"]["probability_exact"] == "1/4"
    plan = client.get("/v1/conditions/chance/plan").json()
    assert "Vague" in " ".join(plan["sentences"])


def test_derived_numbers_follow_from_the_keep_functions(client: httpx.Client) -> None:
    rates = {"smoke": 10, "report": 2}
    answer = client.post(
        "/v1/conditions:validate", json={"condition": query(ALARM), "rates": rates}
    ).json()
    assert answer["valid"], answer
    # The relation, max_delay and max_skew.
    horizon = 300_000_000 + 1_000_000 + 1_000_000
    assert answer["derived"] == {
        "buffer_horizon_us": {"smoke": horizon, "report": horizon},
        "worst_case_alarm_latency_us": horizon,
        "can_be_satisfied": True,
        "expected_buffered_events": {"smoke": 3020, "report": 604},
    }
    assert answer["document"]["query"] == ALARM
    strangers = client.post(
        "/v1/conditions:validate", json={"condition": query(ALARM), "rates": {"door": 1}}
    ).json()
    (error,) = strangers["errors"]
    assert (error["field"], error["remedy"]) == ("rates.door", "use report, smoke")
    assert_names(error["problem"], "not a stream")


def test_stream_in_use_is_not_deleted_nor_changed_so_that_the_query_fails(
    client: httpx.Client,
) -> None:
    for name in ("coal", "gas"):
        assert put_stream(client, name, {**INSTANTS}).status_code == 201
    text = absence("Coal {area {var X}, level {>= 3}}", "Gas {area {var X}}")
    assert client.put("/v1/conditions/mine", json=query(text)).status_code == 201
    deleted = said(client.delete("/v1/streams/coal"), 409)
    assert list(deleted) == ["conditions.mine"]
    fewer = {**INSTANTS, "attributes": {"area": "area"}}
    found = said(put_stream(client, "coal", fewer), 409)
    assert_names(found["conditions.mine"], "coal", "attribute level")
    retyped = {**INSTANTS, "attributes": {**ATTRIBUTES, "level": "level"}}
    found = said(put_stream(client, "coal", retyped), 409)
    assert "compared with a number" in found["conditions.mine"]
    found = said(put_stream(client, "gas", {**INSTANTS, "max_uncertainty": "1s"}), 409)
    assert "threshold: is missing" in found["conditions.mine"]
    assert said(put_stream(client, "gas", {**INSTANTS, "partitioning": "grid"}), 409)
    more = {**INSTANTS, "attributes": {**ATTRIBUTES, "room": "room"}, "max_delay": "2s"}
    assert put_stream(client, "coal", more).status_code == 200
    assert client.delete("/v1/conditions/mine").status_code == 204
    assert put_stream(client, "coal", fewer).status_code == 200


def test_plan_is_data_sentences_and_a_picture(client: httpx.Client) -> None:
    path = "/v1/conditions/planned"
    assert client.put(path, json=query(ALARM)).status_code == 201
    answer = client.get(f"{path}/plan")
    plan = answer.json()
    assert answer.headers["vary"] == "Accept"
    assert plan["query"] == ALARM
    assert plan["streams"] == {"s": "smoke", "r": "report"}
    assert_names(plan["sentences"][2], "Smoke event s", "kept until Report", "end + 5 min")
    picture = client.get(f"{path}/plan", headers={"Accept": "image/svg+xml"})
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in picture.headers["content-security-policy"]
    assert picture.text.startswith("<svg ")
    assert "query planned</title>" in picture.text
    # A browser's header, and one that accepts both alike.
    for accept in ("text/html, */*;q=0.8", "image/svg+xml, application/json", "*/*"):
        shown = client.get(f"{path}/plan", headers={"Accept": accept})
        assert shown.json() == plan


def test_kinds_without_a_picture_say_so(client: httpx.Client) -> None:
    pair = {"kind": "mutual_deadline", "a": "smoke", "b": "vague", "window": "2s", "threshold": 0.6}
    assert client.put("/v1/conditions/pair", json=pair).status_code == 201
    answer = client.get("/v1/conditions/pair/plan", headers={"Accept": "image/svg+xml"})
    assert (answer.status_code, answer.json()["error_code"]) == (406, 40601)
    assert client.get("/v1/conditions/pair/plan").status_code == 200
    either = {"Accept": "image/svg+xml, application/json;q=0.5"}
    assert client.get("/v1/conditions/pair/plan", headers=either).json()["emit"] == "pairs"


def test_description_has_the_fields(client: httpx.Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    found = schemas["EventQueryCondition"]
    assert found["properties"]["query"]["anyOf"][1] == {"type": "object"}
    assert found["required"] == ["kind", "query"]
