"""Settings that may contain secrets are also read from files; messages do not repeat them."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from cli.settings import Settings as CliSettings
from cli.settings import shown_url
from cli.variables import known_variables
from kafka_client.secret_files import may_be_secret
from kafka_client.settings import describe
from service.settings import Settings as ServiceSettings
from spark_jobs.settings import Settings as JobSettings
from tests.support.messages import assert_names

EVERYBODY = (ServiceSettings, JobSettings, CliSettings)
MANUAL = Path(__file__).parents[3] / "docs" / "configuration.md"
USER = {"sasl.username": "coincide", "sasl.mechanisms": "PLAIN"}
PASSWORD = "made-up-hunter-2"  # noqa: S105 - the secret that messages must not contain


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COINCIDE_KAFKA_PROPERTIES", json.dumps(USER))


def _refusal(settings: type) -> str:
    with pytest.raises(ValidationError) as found:
        settings()
    (sentence,) = describe(found.value)
    assert PASSWORD not in sentence
    return sentence


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_password_is_read_from_its_file(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_bytes(f"{PASSWORD}{end}".encode())
    monkeypatch.setenv("COINCIDE_KAFKA_PASSWORD_FILE", str(tmp_path / "password"))
    for settings in EVERYBODY:
        found = settings()
        assert found.kafka_properties == {**USER, "sasl.password": PASSWORD}
        assert found.secrets.hide(PASSWORD) == "[hidden]"
        assert PASSWORD not in repr(found)


def test_objects_and_the_url_are_read_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "KAFKA_PROPERTIES": '{"client.id": "x"}\n',
        "SPARK_PROPERTIES": '{"spark.hadoop.example.secret": "y"}\n',
        "URL": "https://u:p@coincide.example\n",
    }
    for name, value in values.items():
        (tmp_path / name).write_text(value)
        monkeypatch.setenv(f"COINCIDE_{name}_FILE", str(tmp_path / name))
    job = JobSettings()
    assert job.kafka_properties == {"client.id": "x"}
    assert job.spark_properties == {"spark.hadoop.example.secret": "y"}
    assert CliSettings().url == "https://u:p@coincide.example"
    assert CliSettings(url="http://other").url == "http://other"
    assert shown_url(CliSettings().url) == "https://coincide.example"


@pytest.mark.usefixtures("user")
def test_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing"
    (tmp_path / "latin").write_bytes(b"\xff")
    problems = {
        missing: os.strerror(errno.ENOENT),
        tmp_path: os.strerror(errno.EISDIR),
        tmp_path / "latin": "it is not UTF-8",
    }
    for path, problem in problems.items():
        monkeypatch.setenv("COINCIDE_KAFKA_PASSWORD_FILE", str(path))
        for settings in EVERYBODY:
            refusal = _refusal(settings)
            assert refusal.startswith(f"COINCIDE_KAFKA_PASSWORD: {path}, ")
            assert_names(refusal, "COINCIDE_KAFKA_PASSWORD_FILE", problem, "correct the path")


@pytest.mark.usefixtures("user")
def test_variable_and_file_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    monkeypatch.setenv("COINCIDE_KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setenv("COINCIDE_KAFKA_PASSWORD_FILE", str(tmp_path / "password"))
    assert _refusal(ServiceSettings) == (
        "COINCIDE_KAFKA_PASSWORD: COINCIDE_KAFKA_PASSWORD_FILE is set too; remove "
        "COINCIDE_KAFKA_PASSWORD or COINCIDE_KAFKA_PASSWORD_FILE"
    )


@pytest.mark.parametrize(
    ("properties", "password", "place", "names"),
    [
        ("{}", PASSWORD, "PROPERTIES: sasl.username", ["missing", "COINCIDE_KAFKA_PASSWORD"]),
        (
            json.dumps({**USER, "sasl.password": "x"}),
            PASSWORD,
            "PROPERTIES: sasl.password",
            ["COINCIDE_KAFKA_PASSWORD", "remove one"],
        ),
        *(
            (json.dumps(USER), wrong, "PASSWORD", ["one line", "printable characters"])
            for wrong in ("", f"{PASSWORD}\nx", f"\t{PASSWORD}")
        ),
    ],
)
def test_password_must_fit_the_properties(
    properties: str,
    password: str,
    place: str,
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COINCIDE_KAFKA_PROPERTIES", properties)
    monkeypatch.setenv("COINCIDE_KAFKA_PASSWORD", password)
    for settings in EVERYBODY:
        refusal = _refusal(settings)
        assert refusal.startswith(f"COINCIDE_KAFKA_{place}: ")
        assert PASSWORD not in refusal
        assert_names(refusal, *names)


def test_manual_lists_the_settings_with_files() -> None:
    text = MANUAL.read_text(encoding="utf-8")
    listed = re.search(r"may contain secrets:([^.]+)\.", text)
    assert listed is not None
    fields = {
        f"COINCIDE_{name.upper()}"
        for settings in EVERYBODY
        for name, field in settings.model_fields.items()
        if may_be_secret(field)
    }
    assert set(re.findall(r"`(\w+)`", listed[1])) == fields
    assert {f"{name}_FILE" for name in fields} <= known_variables()
