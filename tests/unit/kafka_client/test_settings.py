"""Settings that are not valid: every process names the setting and how to correct it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from cli.settings import Settings as CliSettings
from kafka_client.settings import ClientSettings, describe
from service.settings import Settings as ServiceSettings
from spark_jobs.settings import Settings as JobSettings
from tests.support.messages import assert_names

EVERYBODY = (ServiceSettings, JobSettings, CliSettings)
JOB = (JobSettings,)
OBJECTS = [
    ("KAFKA_PROPERTIES", EVERYBODY, '{"security.protocol": "SSL"}'),
    ("SPARK_PROPERTIES", JOB, '{"spark.driver.memory": "4g"}'),
    ("UNTIL_OFFSETS", JOB, '{"events": {"0": 100, "1": 250}}'),
]
# The setting, its value, the path of the wrong member, names in what is said about it.
WRONG_MEMBERS = [
    ("OUTPUT_TOPICS", "siem", "", ["not valid JSON", "character 1", "write a list"]),
    ("OUTPUT_TOPICS", '{"siem": 1}', "", ["JSON list", "got an object"]),
    (
        "KAFKA_PROPERTIES",
        '{"sasl.password": ["x"]}',
        "sasl.password: ",
        ["string", "number", "true or false", "got a list"],
    ),
    ("KAFKA_PROPERTIES", '{"a": "1", "a": "2"}', "a: ", ["repeated", "remove one"]),
    ("KAFKA_PROPERTIES", '{"client.id": "x", "no.such": 1}', "no.such: ", ['"no.such"', "correct"]),
    (
        "KAFKA_PROPERTIES",
        '{"security.protocol": "foo"}',
        "security.protocol: ",
        ['"foo"', '"security.protocol"'],
    ),
    (
        "KAFKA_PROPERTIES",
        '{"security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-512"}',
        "",
        ["sasl.username and sasl.password", "must be set"],
    ),
    (
        "KAFKA_PROPERTIES",
        '{"sasl.jaas.config": "x password=y;"}',
        "sasl.jaas.config: ",
        ["JAAS", "not supported"],
    ),
    ("KAFKA_PROPERTIES", '{"error_cb": "x"}', "error_cb: ", ["callable"]),
    (
        "SPARK_PROPERTIES",
        '{"spark.task.cpus": 2}',
        "spark.task.cpus: ",
        ["string", "got a number", "quotation marks"],
    ),
    (
        "SPARK_PROPERTIES",
        '{"driver.memory": "4g"}',
        "driver.memory: ",
        ["property of Spark", '"spark."'],
    ),
    (
        "SPARK_PROPERTIES",
        '{"spark.driver.memory": "lots"}',
        "spark.driver.memory: ",
        ["whole number", "k, m, g or t"],
    ),
    ("UNTIL_OFFSETS", '{"events": 5}', "events: ", ["object", "partitions", "offsets"]),
    ("UNTIL_OFFSETS", '{"events": {"0": "x"}}', "events: 0: ", ["valid integer"]),
    ("UNTIL_OFFSETS", '{"events": {"0": -1}}', "events: 0: ", ["greater than or equal"]),
    ("UMASK", "rw-------", "", ["match pattern"]),
    ("BOOTSTRAP", "", "", ["''", "address of a broker"]),
    ("PREFIX", "a b", "", ["prefix: 'a b'", "valid topic name"]),
    ("PREFIX", "x" * 201, "", ["at most 200 characters"]),
]


def _said(settings: type, variable: str, value: str, patch: pytest.MonkeyPatch) -> list[str]:
    patch.setenv(f"COINCIDE_{variable}", value)
    with pytest.raises(ValidationError) as found:
        settings()
    return describe(found.value)


@pytest.mark.parametrize(("variable", "readers", "example"), OBJECTS)
def test_what_is_no_json_object_is_named(
    variable: str, readers: tuple[type, ...], example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for settings in readers:
        (sentence,) = _said(settings, variable, "{a:1}", monkeypatch)
        assert sentence.startswith(f"COINCIDE_{variable}: ")
        assert_names(sentence, "not valid JSON", "character 2", f"such as {example}")
        for value, kind in {"[]": "a list", "5": "a number", '"x"': "a string"}.items():
            (sentence,) = _said(settings, variable, value, monkeypatch)
            assert sentence.startswith(f"COINCIDE_{variable}: ")
            assert_names(sentence, "JSON object", f"got {kind}", f"such as {example}")


@pytest.mark.parametrize(("variable", "value", "member", "names"), WRONG_MEMBERS)
def test_a_wrong_member_is_named(
    variable: str,
    value: str,
    member: str,
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readers: dict[str, tuple[type, ...]] = dict.fromkeys(ClientSettings.model_fields, EVERYBODY)
    readers["output_topics"] = (ServiceSettings,)
    for settings in readers.get(variable.lower(), JOB):
        (sentence,) = _said(settings, variable, value, monkeypatch)
        assert sentence.startswith(f"COINCIDE_{variable}: {member}")
        assert_names(sentence, *names)


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (CliSettings, "JARS"),
        (CliSettings, "CA_FILE"),
        (ServiceSettings, "KEYS_FILE"),
        (JobSettings, "JAVA_CACHE"),
    ],
)
def test_empty_path_is_refused(
    settings: type, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sentence,) = _said(settings, variable, "", monkeypatch)
    assert sentence.startswith(f"COINCIDE_{variable}: must not be empty; ")


def test_valid_objects_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COINCIDE_KAFKA_PROPERTIES", '{"client.id": "x", "socket.timeout.ms": 500}')
    monkeypatch.setenv("COINCIDE_UNTIL_OFFSETS", '{"events": {"0": 100}}')
    monkeypatch.setenv("COINCIDE_SPARK_PROPERTIES", '{"spark.driver.memory": "900M"}')
    for settings in EVERYBODY:
        assert settings().kafka_properties == {"client.id": "x", "socket.timeout.ms": 500}
        assert settings(prefix="p").topics.config == "p.config"
        assert settings(bootstrap="h:1").client_properties("y") == {
            "bootstrap.servers": "h:1",
            # The given properties win.
            "client.id": "x",
            "log_level": 2,
            "socket.timeout.ms": 500,
        }
    assert JobSettings().until_offsets == {"events": {0: 100}}
    assert JobSettings().spark_properties == {"spark.driver.memory": "900M"}


@pytest.mark.parametrize(
    ("command", "value"),
    [
        (["-m", "service.main"], "{hunter2"),
        (["-m", "spark_jobs.main"], '{"no.such": "hunter2"}'),
        (["-m", "cli.main", "serve"], '{"no.such": "hunter2"}'),
        (["-m", "cli.main", "tail"], "{hunter2"),
    ],
)
def test_every_process_ends_with_a_sentence_and_code_2(
    command: list[str], value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_KAFKA_PROPERTIES", value)
    # The processes under test.
    done = subprocess.run(  # noqa: S603
        [sys.executable, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "COINCIDE_KAFKA_PROPERTIES: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr
