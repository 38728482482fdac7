"""Samples of streams: records of a request, or the newest records of topics."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from correlation.parsing.intake import Problem, why_unreadable
from correlation.reasons import Reason
from correlation.sampling import SampleRecord, read_sample
from kafka_client.messages import as_bytes
from service.documents.given_records import read_given
from service.errors import FieldProblem, InvalidDocumentError, NoSampleError, NotReadyError
from service.lookup import RecordFinder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from confluent_kafka import Message

    from correlation.condition_kind import ConditionKind, Load
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from correlation.sampling import StreamSample
    from service.newest_records import NewestRecords
    from service.settings import Settings

_LIMIT = "reading ended at the time limit, so the newest records are missing"


class SampleRequest(NamedTuple):
    """A request for a sample.

    Parameters
    ----------
    given : mapping of name to records, or None
        Records by stream; None: they are read from the topics of the condition's streams.
    newest : int
        Max number of records that are read from each topic.
    """

    given: Mapping[str, Sequence[object]] | None
    newest: int


class Samples(NamedTuple):
    """Samples by stream, and sentences on their limits."""

    by_stream: Mapping[str, StreamSample]
    warnings: Sequence[str] = ()


class Derived(NamedTuple):
    """The cost of a condition, and what its sample shows, or None without a sample."""

    derived: dict[str, Any]
    sample: dict[str, Any] | None = None


class Sampler:
    """Reads samples, and lets kinds of conditions estimate load from them.

    Parameters
    ----------
    settings : Settings
        Broker address, and the bounds of reading.
    """

    def __init__(self, settings: Settings) -> None:
        self._finder = RecordFinder(settings)
        self._seconds = settings.explain_seconds
        self._turn = threading.Lock()

    def derive(
        self,
        kind: ConditionKind,
        condition: Condition,
        streams: Mapping[str, Stream],
        load: Load,
        asked: SampleRequest | None,
    ) -> Derived:
        """Compute the cost of a condition, with the rates of samples where `load` has none.

        Parameters
        ----------
        kind, condition
            The condition, and its kind.
        streams : mapping of name to Stream
            Its streams.
        load : Load
            Expected load of the streams.
        asked : SampleRequest or None
            Samples of its streams.

        Raises
        ------
        InvalidDocumentError, InvalidFieldError
            When the form of a record is not valid, or a stream is not one of the condition.
        NoSampleError
            When a topic does not exist or has no records.
        BrokerError, NotReadyError
            When Kafka does not answer, or too many requests are running.
        """
        if asked is None:
            return Derived(kind.derive(condition, streams, load))
        samples = self._read(streams, asked)
        found = {name: it.rate for name, it in samples.by_stream.items() if it.rate is not None}
        load = replace(load, rates={**found, **load.rates})
        estimated = self._estimate(kind, condition, streams, samples, load)
        return Derived(kind.derive(condition, streams, load), estimated)

    def _read(self, streams: Mapping[str, Stream], asked: SampleRequest) -> Samples:
        """Read the samples that are asked for."""
        if asked.given is None:
            return self._read_topics(streams, asked.newest)
        strangers = [name for name in asked.given if name not in streams]
        if strangers:
            remedy = f"use {', '.join(sorted(streams))}"
            raise InvalidDocumentError.of_all(
                tuple(
                    FieldProblem(f"sample.{name}", "is not a stream of the condition", remedy)
                    for name in strangers
                )
            )
        read = {name: list(_read_given(name, given)) for name, given in asked.given.items()}
        with self._turns():
            return Samples({name: read_sample(streams[name], it) for name, it in read.items()})

    def _estimate(
        self,
        kind: ConditionKind,
        condition: Condition,
        streams: Mapping[str, Stream],
        samples: Samples,
        load: Load,
    ) -> dict[str, Any]:
        """Return the facts of samples, and what the kind of the condition estimates from them."""
        with self._turns():
            found = kind.measure(condition, streams, samples.by_stream, load)
        own = [sentence for it in samples.by_stream.values() for sentence in it.warnings()]
        return {
            "streams": {name: it.describe() for name, it in samples.by_stream.items()},
            **found,
            "warnings": [*samples.warnings, *own, *found.get("warnings", ())],
        }

    @contextmanager
    def _turns(self) -> Iterator[None]:
        """Wait until other samples are evaluated: each uses a core, and up to 200 MB."""
        if not self._turn.acquire(timeout=self._seconds):
            detail = "other samples are being evaluated"
            problem = FieldProblem("sample", detail, "try again, or leave the sample out")
            raise NotReadyError(detail, (problem,))
        try:
            yield
        finally:
            self._turn.release()

    def _read_topics(self, streams: Mapping[str, Stream], newest: int) -> Samples:
        found = self._finder.read_newest({it.topic for it in streams.values()}, newest)
        problems = [
            FieldProblem(
                "sample_from_topic",
                f"topic {it.topic} of stream {name} {_describe_lack(found.get(it.topic))}",
                "send a sample in the request, or produce records first",
            )
            for name, it in streams.items()
            if it.topic not in found or not found[it.topic].messages
        ]
        if problems:
            raise NoSampleError(f"{problems[0].field}: {problems[0].problem}", tuple(problems))
        warnings = [f"{topic}: {_LIMIT}" for topic, it in sorted(found.items()) if not it.in_time]
        warnings += [_describe_cut(topic, it) for topic, it in sorted(found.items()) if it.cut]
        with self._turns():
            read = {topic: [*map(_parse, it.messages)] for topic, it in found.items()}
            samples = {
                name: read_sample(it, read[it.topic], is_cut=bool(found[it.topic].cut))
                for name, it in streams.items()
            }
        return Samples(samples, warnings)


def _describe_lack(found: NewestRecords | None) -> str:
    if found is None:
        return "does not exist"
    return "has no records" if found.in_time else "was not read before the time limit"


def _describe_cut(topic: str, found: NewestRecords) -> str:
    partitions = len(found.cut)
    named = "partition has" if partitions == 1 else "partitions have"
    return (
        f"{topic}: {partitions} {named} more records in the time of the sample than were read, so "
        "the rate is the sum of the rates of the partitions; use fewer records for the sample, or "
        "increase COINCIDE_EXPLAIN_RECORDS"
    )


def _read_given(name: str, records: Iterable[object]) -> Iterator[SampleRecord]:
    """Yield the records of a stream in a request; values that are not objects are rejected."""
    for place, document in enumerate(records):
        field = f"sample.{name}[{place}]"
        if not isinstance(document, dict):
            yield SampleRecord(document, offset=place)
            continue
        given = read_given(field, document)
        if given.form == "event":
            remedy = 'write the record as in its topic: {"record": {…}}'
            raise InvalidDocumentError.of(f"{field}.event", "is not a record", remedy)
        yield SampleRecord(
            given.value, None, given.record_key, given.record_timestamp_us, offset=place
        )


def _parse(message: Message) -> SampleRecord:
    """Return a record of a topic, with its problem if it is not JSON."""
    kind, record_timestamp_ms = message.timestamp()
    stamp_us = None if kind == TIMESTAMP_NOT_AVAILABLE else record_timestamp_ms * 1000
    key, place = as_bytes(message.key()), (message.partition() or 0, message.offset() or 0)
    text = as_bytes(message.value())
    if text is None:
        problem = Problem(Reason.NULL_VALUE, "the record has no value")
        return SampleRecord(None, None, key, stamp_us, *place, problem)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        problem = why_unreadable(text, error)
        return SampleRecord(None, text, key, stamp_us, *place, problem)
    return SampleRecord(value, text, key, stamp_us, *place)
