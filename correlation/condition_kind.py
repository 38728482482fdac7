"""`ConditionKind`: the interface between a kind of condition and the rest of the software.

A kind is one folder and one registration (`correlation.kinds`). REST models, plans, explanations,
the warm-up of the job, `tail` and the metrics page are built from its `ConditionKind`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from correlation.buffers.buffer import StreamBuffer
from correlation.drawing import Line
from correlation.explaining import GivenRecord, SearchEffect, Step
from correlation.kind_fields import Field, FieldType, NamedStream, Values
from correlation.lists import Lists
from correlation.operators import Condition, Evaluation, Operator
from correlation.reporting import (
    CounterOf,
    Gauge,
    Ratio,
    ReplaySummary,
    ResultObjects,
    ResultReader,
)
from correlation.resources.schemas import RecordType
from correlation.resources.streams import Stream
from correlation.resources.topics import Channel
from correlation.sampling import StreamSample
from correlation.warming import Algorithms, WarmUp

# The whole interface is imported from here, including the definitions of `kind_fields`.
__all__ = ["Chance", "ConditionKind", "Field", "FieldType", "Load", "NamedStream", "Values"]


@dataclass(frozen=True, slots=True)
class Load:
    """Expected load of a condition's streams.

    Parameters
    ----------
    rates : mapping of stream to float
        Events per second; streams of unknown rate are missing.
    keys : float
        Number of join keys of each stream, assumed to be equally frequent.
    """

    rates: Mapping[str, float]
    keys: float = 1.0


class Chance(NamedTuple):
    """Alarms that independent events of two streams cause by chance.

    Attributes
    ----------
    streams : mapping of role to stream
        Names of the two streams, which are equal for a self-correlation. The roles are labels of
        the metric `chance_seconds`.
    seconds : float
        Alarms per second at one event per second of each stream. The number of alarms is this times
        the rates of both streams, divided by the number of equally frequent keys.
    """

    streams: Mapping[str, str]
    seconds: float


def _no_warm_up(algorithms: Algorithms, shapes: str) -> WarmUp:  # noqa: ARG001 - as typed
    return WarmUp({}, ())


def _no_optional_roles(condition: Any) -> Collection[str]:  # noqa: ANN401, ARG001 - as typed
    return ()


def _no_events(
    condition: Any,  # noqa: ANN401, ARG001 - as typed
    streams: Mapping[str, Stream],  # noqa: ARG001 - as typed
    record: Mapping[str, Any],  # noqa: ARG001 - as typed
) -> Mapping[str, Values]:
    return {}


def _no_search(
    condition: Any,  # noqa: ANN401, ARG001 - as typed
    streams: Mapping[str, Stream],  # noqa: ARG001 - as typed
    given: Mapping[str, GivenRecord],  # noqa: ARG001 - as typed
) -> Mapping[str, Callable[[GivenRecord], bool]]:
    return {}


def _as_held(
    condition: Any,  # noqa: ANN401, ARG001 - as typed
    streams: Mapping[str, Stream],  # noqa: ARG001 - as typed
    held: Mapping[str, Stream],
) -> Mapping[str, Stream]:
    return held


def _no_measures(
    condition: Any,  # noqa: ANN401, ARG001 - as typed
    streams: Mapping[str, Stream],  # noqa: ARG001 - as typed
    samples: Mapping[str, StreamSample],  # noqa: ARG001 - as typed
    load: Load,  # noqa: ARG001 - as typed
) -> dict[str, Any]:
    return {}


def _draw_nothing(_answer: Mapping[str, Any]) -> Sequence[Line]:
    return ()


def _as_registered(document: Values) -> Values:
    return document


def _no_chance(_condition: object, _streams: Mapping[str, Stream]) -> None:
    """Return None: chance alarms cannot be computed."""


def _no_warnings(_condition: object, _streams: Mapping[str, Stream]) -> Sequence[str]:
    return ()


def _nothing_missing(_condition: object, _count: CounterOf) -> None:
    return None


_CHANGES_VERDICT = SearchEffect("change", "the verdict")
_NO_METRICS: Mapping[str, str] = MappingProxyType({})
_NO_GAUGES: Mapping[str, Gauge] = MappingProxyType({})
_NO_RATIOS: Mapping[str, Ratio] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ConditionKind:
    """A kind of condition.

    Parameters
    ----------
    name : str
        Value of `kind` in the document.
    summary : str
        One line for the API's documentation.
    fields : tuple of Field
        Fields of its document, except `kind`.
    build : callable
        `(name, version, values) -> Condition`; raises InvalidFieldError. A field that is not valid
        in the user's document is missing in `values`, which is an error of this field.
    check : callable
        `(condition, streams)`; raises InvalidFieldError when the condition cannot use the streams.
    operator : callable
        `(condition, streams) -> Operator`.
    operator_streams : callable
        `(condition, streams, held) -> streams` that the operator is built with. `streams` are those
        in force, which `check` accepts; `held` have the limits of all buffered events, of which
        some were read before a declaration changed. Default: `held`.
    derive : callable
        `(condition, streams, load) -> dict`: the cost of the condition. The dict contains
        `buffer_horizon_us`: how long the events of each stream are kept, in µs.
    horizon_field : callable
        `(condition, stream) -> str`: the field that sets how long the stream's events are kept.
    plan : callable
        `(condition, streams) -> dict`: a readable description of the evaluation.
    roles : callable
        `(condition) -> {role: stream}`: the events that `explain` takes.
    explain : callable
        `(condition, streams, given) -> dict`: the evaluation of one record per role; see
        correlation.explaining. The dict describes the given record of a role under its name; with
        `names_events` under its name in `events`. With `search` there is a parameter `found`, with
        a default: the records of each role that were found, newest first. With `lists` there is a
        parameter `find_list`, with a default: see correlation.explaining.
    steps : tuple of Step
        The steps that its explanations may contain, in order.
    example : mapping
        Example document of this kind.
    draw_explanation : callable
        `(answer) -> lines` that `coincide explain` writes below the events: a picture of the
        explanation. `answer` is the answer of the service, as read from JSON. Default: no lines.
    open_reader : callable or None
        `() -> ResultReader` of its output records; None: each record is one result and names its
        kind.
    warm_up : callable
        `(algorithms, shapes) -> WarmUp`: conditions that are evaluated before the first batch, so
        that kernels are compiled, and their streams. `algorithms` are those to use: the defaults
        of the kind, or all that a document may choose; `shapes` is the form of uncertain times:
        intervals, templates or histograms. Kinds with equal streams are evaluated together.
        Default: no conditions.
    metrics : mapping of str to str
        Help strings of its operators' counters, by name without prefix.
    gauges : mapping of str to Gauge
        Gauges of its operators (`Evaluation.gauges`), by name without prefix.
    ratios : mapping of str to Ratio
        Ratios of its counters, by name without prefix. The first is the `hit_ratio` of a
        condition's status.
    channels : tuple of Channel
        Channels of its results beside alarms; kinds may share equal channels.
    lists : Lists or None
        The lists that its conditions maintain; their channel is one of `channels`.
    withdraw : callable or None
        `(condition, buffers, state) -> Evaluation` whose results or shares withdraw what the
        condition has published, such as its lists. It is called when the condition is removed,
        paused, replaced, or cannot be evaluated any more, in the transaction of the batch in which
        that happens. `buffers` are the buffers of the condition's streams after its last block, and
        `state`, which is not empty, is the state that its operator dumped then. Nothing else is
        known: a restart may have happened in between. The next operator of the condition begins
        without state.
    merge_shares : callable or None
        `(blobs) -> Evaluation` of the shares of one version of a condition in a block, one from
        each slot (`correlation.operators.Share`). Its alarms and counts are added to the totals,
        and its gauges replace those of the merge before. None: its operators return no shares.
    join_shares : callable or None
        `(slots) -> blob of each slot` of the shares of each slot in consecutive blocks, of which
        slots may have different numbers: shares as of one block with the records of all. None if
        `merge_shares` is None.
    named_streams : callable or None
        `(values) -> NamedStream of each stream` that a document names, in which fields may be
        missing or not valid. None: the fields of type stream.
    optional_roles : callable
        `(condition) -> roles` that `explain` can do without.
    events_to_explain : callable
        `(condition, streams, record) -> {role: event}`: the events of one of its records, as a
        request of `explain` gives them; raises CorrelationError or ValueError if the record is not
        valid. Default: none, and the console does not explain the records.
    search : callable
        `(condition, streams, given) -> {role: test}`: optional roles, given or not, whose further
        events may change the verdict from satisfied to not satisfied; each with a test of a record
        that may.
    search_effect : SearchEffect
        What the events that `search` finds may do, for notes.
    chance : callable
        `(condition, streams) -> Chance`, or None if chance alarms are not in proportion to the
        rates of two streams, or cannot be computed. Default: None.
    picture : callable or None
        `(condition, streams) -> str`: the plan as an SVG document; None: the plan has no picture.
    names_events : bool
        Whether the roles are names that users choose. Requests and answers of `explain` then have
        the field `events`, so that no name collides with another field.
    horizon_remedy : str
        What a user can do so that events are kept for a shorter time: part of an error message.
    measure : callable
        `(condition, streams, samples, load) -> dict`: JSON-able estimates from samples of the
        streams by name, of which some may be missing, beside the facts that each sample describes;
        see correlation.sampling. `load` has the rates of the samples where no others are known.
        The list `warnings`, if present, has sentences with remedies. Default: no estimates; the
        rates are then used by `derive` alone.
    warn : callable
        `(condition, streams) -> sentences`: likely mistakes of an accepted document, with remedies.
    find_missing : callable
        `(condition, count) -> sentence`: why results of a condition are missing, from its counters
        since it was registered (`correlation.reporting.CounterOf`); None if no reason is known,
        which is the default.
    records : tuple of RecordType
        Types of its output records; kinds may share equal types. Empty: the documentation
        describes them as any JSON objects.
    replay_document : callable
        `(document) -> document` that `coincide replay` evaluates in place of the registered one: a
        replay writes each result as one line, and its blocks are not those of the job. Default:
        the registered document.
    replay_summary : ReplaySummary or None
        How a replay reports its counters; None: the number of results, and each of `metrics`.
    state : str
        Name of the form of its operators' state. If a condition is replaced by one of another kind,
        its operator continues from the former state only if the names of both kinds are equal.
        Default: the name of the kind.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    build: Callable[[str, int, Values], Condition]
    check: Callable[[Any, Mapping[str, Stream]], None]
    operator: Callable[[Any, Mapping[str, Stream]], Operator]
    derive: Callable[[Any, Mapping[str, Stream], Load], dict[str, Any]]
    horizon_field: Callable[[Any, str], str]
    plan: Callable[[Any, Mapping[str, Stream]], dict[str, Any]]
    roles: Callable[[Any], Mapping[str, str]]
    explain: Callable[..., dict[str, Any]]
    example: Mapping[str, Any]
    draw_explanation: Callable[[Mapping[str, Any]], Sequence[Line]] = _draw_nothing
    open_reader: Callable[[], ResultReader] | None = None
    warm_up: Callable[[Algorithms, str], WarmUp] = _no_warm_up
    metrics: Mapping[str, str] = field(default_factory=lambda: _NO_METRICS)
    named_streams: Callable[[Values], Iterable[NamedStream]] | None = None
    optional_roles: Callable[[Any], Collection[str]] = _no_optional_roles
    events_to_explain: Callable[
        [Any, Mapping[str, Stream], Mapping[str, Any]], Mapping[str, Values]
    ] = _no_events
    search: Callable[
        [Any, Mapping[str, Stream], Mapping[str, GivenRecord]],
        Mapping[str, Callable[[GivenRecord], bool]],
    ] = _no_search
    search_effect: SearchEffect = _CHANGES_VERDICT
    steps: tuple[Step, ...] = ()
    chance: Callable[[Any, Mapping[str, Stream]], Chance | None] = _no_chance
    picture: Callable[[Any, Mapping[str, Stream]], str] | None = None
    names_events: bool = False
    operator_streams: Callable[
        [Any, Mapping[str, Stream], Mapping[str, Stream]], Mapping[str, Stream]
    ] = _as_held
    horizon_remedy: str = "reduce max_delay"
    gauges: Mapping[str, Gauge] = field(default_factory=lambda: _NO_GAUGES)
    ratios: Mapping[str, Ratio] = field(default_factory=lambda: _NO_RATIOS)
    channels: tuple[Channel, ...] = ()
    lists: Lists | None = None
    withdraw: Callable[[Any, Mapping[str, StreamBuffer], bytes], Evaluation] | None = None
    merge_shares: Callable[[Sequence[bytes]], Evaluation] | None = None
    join_shares: Callable[[Sequence[Sequence[bytes]]], Sequence[bytes]] | None = None
    measure: Callable[
        [Any, Mapping[str, Stream], Mapping[str, StreamSample], Load], dict[str, Any]
    ] = _no_measures
    warn: Callable[[Any, Mapping[str, Stream]], Sequence[str]] = _no_warnings
    find_missing: Callable[[Any, CounterOf], str | None] = _nothing_missing
    records: tuple[RecordType, ...] = ()
    replay_document: Callable[[Values], Values] = _as_registered
    replay_summary: ReplaySummary | None = None
    state: str = ""

    def continues(self, former: ConditionKind) -> bool:
        """Return whether its operators continue from the states of operators of a former kind."""
        return (self.state or self.name) == (former.state or former.name)

    def streams_named(self, values: Values) -> list[NamedStream]:
        """Return the streams that a document names, with the fields that contain the names.

        Parameters
        ----------
        values : mapping
            A document of this kind; names in fields that are not valid are left out.
        """
        if self.named_streams is not None:
            return list(self.named_streams(values))
        fields = [it.name for it in self.fields if it.type == "stream"]
        return [NamedStream(it, values[it]) for it in fields if isinstance(values.get(it), str)]

    def reader(self) -> ResultReader:
        """Return a new reader of its output records."""
        return ResultObjects(self.name) if self.open_reader is None else self.open_reader()
