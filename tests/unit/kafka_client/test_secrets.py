"""Secrets are hidden in every string; other text stays readable."""

from __future__ import annotations

import logging

import pytest

from kafka_client.secrets import HidingFormatter, Secrets

JAAS = 'org.x.ScramLoginModule required username="coincide" password="pass \\"word\\"";'


@pytest.mark.parametrize(
    ("name", "value", "text", "hidden"),
    [
        ("sasl.password", "hunter22", "login as hunter22 failed", "login as [hidden] failed"),
        ("sasl.jaas.config", JAAS, f"config {JAAS}!", "config [hidden]!"),
        ("sasl.jaas.config", JAAS, 'user coincide, pass "word"', "user coincide, [hidden]"),
        ("spark.hadoop.fs.s3a.access.key", "AKIA1", "key AKIA1", "key [hidden]"),
        ("ssl.keystore.key", "-----BEGIN", "got -----BEGIN", "got [hidden]"),
        ("spark.authenticate.secret", "a.*b+", "a.*b+ aXXbb", "[hidden] aXXbb"),
        ("sasl.username", "coincide", "user coincide", "user coincide"),
        ("spark.token.renewal", "true", "true", "true"),
    ],
)
def test_secret_is_hidden(name: str, value: str, text: str, hidden: str) -> None:
    assert Secrets({"client.id": "x"}, {name: value}).hide(text) == hidden


def test_longer_secret_is_hidden_whole() -> None:
    secrets = Secrets({"sasl.password": "hunter"}, {"ssl.key.password": "hunter22"})
    assert secrets.hide("hunter22 hunter") == "[hidden] [hidden]"


def test_log_lines_and_tracebacks_hide_secrets() -> None:
    formatter = HidingFormatter("%(message)s", Secrets({"sasl.password": "hunter22"}))
    error = ValueError("hunter22 is wrong")
    info = (ValueError, error, None)
    record = logging.LogRecord("job", logging.ERROR, "", 0, "login %s", ("hunter22",), info)
    assert formatter.format(record) == "login [hidden]\n    ValueError: [hidden] is wrong"


FORGED = "x\r\n2026-01-01 00:00:00,000 INFO service.access: ada signed in\x1b[31m\u2028"


def test_message_is_one_line() -> None:
    record = logging.LogRecord("job", logging.ERROR, "", 0, "key %s", (FORGED,), None)
    shown = HidingFormatter("%(levelname)s %(message)s", Secrets()).format(record)
    assert shown == (
        r"ERROR key x\r\n2026-01-01 00:00:00,000 INFO service.access: ada signed in\x1b[31m\u2028"
    )


def test_lines_of_a_traceback_are_no_records() -> None:
    def fail() -> None:
        raise ValueError(FORGED)

    with pytest.raises(ValueError, match="ada signed in") as caught:
        fail()
    info = (ValueError, caught.value, caught.tb)
    record = logging.LogRecord("job", logging.ERROR, "", 0, "failed", (), info)
    first, *others = HidingFormatter("%(message)s", Secrets()).format(record).split("\n")
    assert first == "failed"
    assert others[0] == "    Traceback (most recent call last):"
    assert "    " + "    raise ValueError(FORGED)" in others
    assert all(it.startswith("    ") and it.isprintable() for it in others)
