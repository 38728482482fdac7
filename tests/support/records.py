"""Checks records against the schemas that the AsyncAPI document publishes."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from jsonschema_rs import Draft7Validator

from correlation.kinds import KINDS
from correlation.operators import Heading, OutputRecord
from service.asyncapi import record_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from correlation.condition_kind import ConditionKind
    from correlation.engine.program import Outcome
    from correlation.resources.schemas import RecordType
    from tests.support.kafka import Received

_BUILT_IN = tuple(KINDS.values())
_JSON = "application/json"


class _Checked(NamedTuple):
    """A type of record, and the validators of its headers and its value."""

    type: RecordType
    headers: Draft7Validator
    value: Draft7Validator


class RecordChecker:
    """Finds the type of each record; a record that has none fails the test.

    Parameters
    ----------
    kinds
        Kinds of conditions whose records are checked.
    """

    def __init__(self, kinds: Iterable[ConditionKind] = _BUILT_IN) -> None:
        self._types = {
            topic: [
                _Checked(it, Draft7Validator(dict(it.headers)), Draft7Validator(dict(it.value)))
                for it in types
            ]
            for topic, types in record_types(kinds).items()
        }

    def topics(self) -> frozenset[str]:
        """Return the topics whose records have types, without the prefix of the installation."""
        return frozenset(self._types)

    def find_type(
        self, topic: str, value: bytes | None, headers: Mapping[str, str] | None = None
    ) -> str:
        """Return the name of the type of a record.

        Parameters
        ----------
        topic
            Name of the topic, without the prefix of the installation.
        value
            Value of the record.
        headers
            Headers of the record; None: not known.

        Raises
        ------
        AssertionError
            No type matches; the message has the first error of each.
        """
        problems = []
        for it in self._types[topic]:
            wrong = next(it.headers.iter_errors(headers), None) if headers is not None else None
            if wrong is None:
                found = _parse(value) if it.type.content_type == _JSON else None
                wrong = next(it.value.iter_errors(found), None)
            if wrong is None:
                return it.type.name
            problems.append(f"{it.type.name}: {wrong.message[:300]}")
        raise AssertionError("\n".join([f"{topic}: {value!r} {headers}", *problems]))

    def check(self, prefix: str, records: Iterable[Received]) -> None:
        """Check the records of a topic of an installation; other topics are ignored."""
        for record in records:
            topic = record.topic.removeprefix(f"{prefix}.")
            if topic != record.topic and topic in self._types:
                self.type_of(topic, record)

    def type_of(self, topic: str, record: Received) -> str:
        """Return the name of the type of a record that was read; see `find_type`."""
        headers = {
            name: it.decode("utf-8", "backslashreplace") for name, it in record.headers.items()
        }
        return self.find_type(topic, record.value, headers)

    def records_of(self, outcome: Outcome) -> Iterator[tuple[Heading, OutputRecord]]:
        """Yield the results that an outcome would publish, with their headings, checked.

        The record of the slot is checked too.
        """
        slot = {**outcome.metrics, "slot": 0, "slots": 1}
        self.find_type("metrics", json.dumps(slot).encode(), {})
        for result in outcome.results:
            heading = result.heading(outcome.detected_at_us)
            for record in result.records(outcome.detected_at_us):
                headers = {**heading.headers, "ce_id": record.ident}
                self.find_type(heading.channel, record.value, headers)
                yield heading, record


def _parse(value: bytes | None) -> Any:  # noqa: ANN401 - any JSON value
    return None if value is None else json.loads(value)


@cache
def built_in_checker() -> RecordChecker:
    """Return the checker of the built-in kinds, which the tests of a process share."""
    return RecordChecker()
