"""Advice on a stream's declaration, as sentences, from the events observed so far.

A limit that is too small loses events or pairs: the advice warns as soon as events come near it. A
limit that is too large costs memory and time: the advice waits until enough events were observed.

Sufficient max_delay. An event is late if its `latest` is below the watermark, which means more than
max_delay below the `latest` of an earlier record of its partition. This requires that the delays of
the two records differ by more than max_delay. Heartbeats require that max_delay covers the maximum
delay. So max_delay is sufficient if it covers the maximum delay and, when some delays are negative,
the maximum minus the minimum delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.limits import DURATION_LIMIT_US
from correlation.reasons import Reason
from correlation.resources.durations import describe_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from correlation.engine.contract import ContractFacts, Spread
    from correlation.resources.streams import Stream

# Number of events after which a value that was not observed counts as rare.
ENOUGH = 1_000
# A value above nine tenths of a limit is near it; as in correlation.engine.contract.
_NEAR = 0.9
# Factors from which a limit counts as far too large.
_HALF, _QUARTER, _FIVE = 2, 4, 5
_COMMON = 0.99
# Rejections that a wrong limit may cause, by the fields of uncertain instants and of events that
# last; the producer causes the others.
_INSTANTS = {
    Reason.LONGER_THAN_DECLARED: ("longer than max_uncertainty", "max_uncertainty_us"),
    Reason.SHORTER_THAN_DECLARED: ("shorter than min_uncertainty", "min_uncertainty_us"),
    Reason.FUTURE_DATED: ("dated more than max_skew after their arrival", "max_skew_us"),
}
_LASTING = _INSTANTS | {
    Reason.LONGER_THAN_DECLARED: ("longer than max_length", "max_length_us"),
    Reason.SHORTER_THAN_DECLARED: ("shorter than min_length", "min_length_us"),
}
# Rejections that a wrong declaration of a field may cause.
_UNFIT = {
    Reason.BAD_ATTRIBUTE: ("a value does not fit the type of its attribute", "attributes"),
    Reason.BAD_TOKENS: ("a value is not a list or string of valid tokens", "tokens"),
}
# Rejections of records that do not have the fields of the mapping, or not in its format.
_UNMAPPED = frozenset(
    {
        Reason.MISSING_FIELD,
        Reason.MISSING_KEY,
        Reason.WRONG_TYPE,
        Reason.NOT_A_TIME,
        Reason.TIME_OUT_OF_RANGE,
    }
)


def advise(
    stream: Stream, facts: ContractFacts | None, slots: int | None = None
) -> tuple[str, ...]:
    """Return advice on the wrong or wasteful fields of a stream's declaration.

    Parameters
    ----------
    stream : Stream
        The declared stream.
    facts : ContractFacts or None
        Observations since the declaration.
    slots : int or None
        Number of slots of the job; None: unknown.

    Returns
    -------
    tuple of str
        Sentences, the costliest problem first; empty if the declaration fits.
    """
    if facts is None or not (facts.events or facts.rejected):
        return (
            "no event was read since the declaration was last changed",
            *_on_groups(stream.partitioning.groups, slots),
        )
    return (
        *_on_breaches(stream, facts),
        *_on_delays(stream, facts),
        *(_on_lasting if stream.lasts else _on_lengths)(stream, facts),
        *_on_groups(stream.partitioning.groups, slots),
    )


def _on_breaches(stream: Stream, facts: ContractFacts) -> Iterator[str]:
    """Yield advice on records that went to the dead-letter topic."""
    limits = _LASTING if stream.lasts else _INSTANTS
    for reason, (what, field) in limits.items():
        count = facts.rejected.get(reason, 0)
        if count:
            declared = describe_duration(getattr(stream, field))
            name = field.removesuffix("_us")
            remedy = f"lower {name}" if name.startswith("min") else f"raise {name}"
            yield (
                f"{_records(count)} rejected: {what} ({declared}); {remedy}, or "
                "correct the producer"
            )
    for reason, (problem, field) in _UNFIT.items():
        count = facts.rejected.get(reason, 0)
        if count:
            yield f"{_records(count)} rejected: {problem}; correct {field}, or the producer"
    unmapped = {reason: it for reason, it in facts.rejected.items() if reason in _UNMAPPED}
    if unmapped:
        yield (
            f"{_records(sum(unmapped.values()))} rejected: a field of the mapping is missing, or "
            f"its value has another format or unit ({_list(unmapped)}); correct mapping, or the "
            "producer"
        )
    known = {*limits, *_UNFIT, *_UNMAPPED}
    others = {reason: it for reason, it in facts.rejected.items() if reason not in known}
    if others:
        yield (
            "records were rejected for reasons that do not depend on the declaration: "
            f"{_list(others)}"
        )


def _on_delays(stream: Stream, facts: ContractFacts) -> Iterator[str]:
    declared_us, delays = stream.max_delay_us, facts.delays
    declared = describe_duration(declared_us)
    share = f"{facts.late:,} of {facts.events:,} events ({_percent(facts.late, facts.events)})"
    if delays is None:
        if facts.late:
            missed = f"{share} were late, and results may have been missed"
            yield f"{missed}; raise max_delay ({declared})"
        return
    slowest = f"the slowest event {_took(delays.max_us)}"
    early_us = max(0, -delays.min_us)
    if early_us:
        slowest += f", the quickest {_took(delays.min_us)}"
    needed_us = max(0, delays.max_us + early_us)
    if facts.late:
        missed = f"{share} were late, and results may have been missed:"
        remedy = f"raise it to {describe_duration(needed_us)} or more"
        if needed_us > DURATION_LIMIT_US:
            yield (
                f"{missed} {slowest}: its time probably has a wrong unit; correct the mapping of "
                "the stream, or the producer"
            )
        elif needed_us > declared_us:
            yield f"{missed} {slowest}, but max_delay is {declared}; {remedy}"
        else:
            yield (
                f"{missed} {slowest}, and max_delay is {declared}: max_delay was raised since, or "
                "the topic keeps the producers' own timestamps, or the clocks of Kafka and of the "
                "job differ"
            )
    elif needed_us > declared_us:
        yield (
            f"{slowest}, more than max_delay ({declared}): another such event may be late; raise "
            "max_delay"
        )
    elif needed_us > declared_us * _NEAR:
        near = _percent(facts.near.get("max_delay", 0), facts.events)
        yield (
            f"{slowest}; max_delay is {declared}, and {near} of the events took more than 90 % of "
            "it: an event that exceeds it is late and may miss results; raise max_delay"
        )
    elif facts.events >= ENOUGH:
        yield from _on_large_delay(declared_us, delays, needed_us)


def _on_large_delay(declared_us: int, delays: Spread, needed_us: int) -> Iterator[str]:
    """Yield advice if max_delay is far larger than all or most events need."""
    common_us = max(delays.quantile(_COMMON).at_most_us, 0)
    shown = (
        f"99 % of the events arrive within {describe_duration(common_us)} and the slowest "
        f"{_took(delays.max_us)}, but max_delay is {describe_duration(declared_us)}: buffers are"
    )
    if declared_us >= _HALF * needed_us:
        yield f"{shown} {_larger(declared_us, needed_us)} than needed; lower max_delay"
    elif declared_us >= _FIVE * common_us:
        yield (
            f"{shown} {_larger(declared_us, common_us)} than 99 % of the events need; with a lower "
            "max_delay, slow events are late and may miss results"
        )


def _on_lengths(stream: Stream, facts: ContractFacts) -> Iterator[str]:
    lengths, max_uncertainty_us, min_uncertainty_us = (
        facts.lengths,
        stream.max_uncertainty_us,
        stream.min_uncertainty_us,
    )
    if lengths is None or min_uncertainty_us == max_uncertainty_us:
        return
    max_length, min_length = (
        describe_duration(max_uncertainty_us),
        describe_duration(min_uncertainty_us),
    )
    fixed = stream.mapping.spread_us
    if fixed is not None:
        spread = describe_duration(fixed)
        yield (
            f"the mapping makes every event {spread} long, but the stream declares {min_length} to "
            f"{max_length}; set min_uncertainty and max_uncertainty to {spread}: decisions "
            "are then faster"
        )
        return
    enough = facts.events >= ENOUGH
    max_seen = f"the longest event observed is {describe_duration(lengths.max_us)}"
    min_seen = f"the shortest event observed is {describe_duration(lengths.min_us)}"
    if lengths.max_us > max_uncertainty_us * _NEAR:
        near = _percent(facts.near.get("max_uncertainty", 0), facts.events)
        yield (
            f"{max_seen}; max_uncertainty is {max_length}, and {near} of the events exceed 90 % of "
            "it: longer events are rejected; raise max_uncertainty if the producer may send them"
        )
    elif enough and max_uncertainty_us >= _HALF * lengths.max_us:
        yield (
            f"{max_seen}, but max_uncertainty is {max_length}; lower max_uncertainty: decisions "
            "are then faster, and buffers are smaller"
        )
    if min_uncertainty_us and facts.near.get("min_uncertainty", 0):
        yield (
            f"{min_seen}; min_uncertainty is {min_length}: shorter events are rejected; lower "
            "min_uncertainty if the producer may send them"
        )
    elif enough and lengths.min_us - min_uncertainty_us >= max_uncertainty_us // _QUARTER:
        yield (
            f"{min_seen}, but min_uncertainty is {min_length}; raise min_uncertainty: decisions "
            "are then faster"
        )


def _on_lasting(stream: Stream, facts: ContractFacts) -> Iterator[str]:
    """Yield advice on the limits of events that last."""
    lengths, low_us, high_us = facts.lengths, stream.min_length_us, stream.max_length_us
    if lengths is None:
        return
    max_seen = f"the longest event observed is {describe_duration(lengths.max_us)}"
    if high_us is not None and lengths.max_us > high_us * _NEAR:
        near = _percent(facts.near.get("max_length", 0), facts.events)
        yield (
            f"{max_seen}; max_length is {describe_duration(high_us)}, and {near} of the events "
            "exceed 90 % of it: longer events are rejected; raise max_length if the producer may "
            "send them"
        )
    elif high_us is not None and facts.events >= ENOUGH and high_us >= _HALF * lengths.max_us:
        yield (
            f"{max_seen}, but max_length is {describe_duration(high_us)}; lower max_length: "
            "buffers may be smaller"
        )
    if low_us and facts.near.get("min_length", 0):
        yield (
            f"the shortest event observed is {describe_duration(lengths.min_us)}; min_length is "
            f"{describe_duration(low_us)}: shorter events are rejected; lower min_length if the "
            "producer may send them"
        )


def _on_groups(groups: int, slots: int | None) -> Iterator[str]:
    """Yield advice if a grid has more groups than slots: one per slot balances the work."""
    if slots is not None and groups > slots:
        yield (
            f"the grid has {groups} groups, but the job has {slots} "
            f"slot{'' if slots == 1 else 's'}: {slots} groups balance the work as well, and each "
            f"further group stores another copy of every event; lower groups to at most {slots}, "
            "or increase the number of slots"
        )


def _took(delay_us: int) -> str:
    if delay_us < 0:
        return f"came {describe_duration(-delay_us)} before its latest time"
    return f"took {describe_duration(delay_us)}"


def _larger(declared_us: int, enough_us: int) -> str:
    """Return an upper bound of how much larger buffers are; conditions also affect their size."""
    return f"up to {declared_us / enough_us:.0f} times larger" if enough_us else "larger"


def _list(rejected: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count:,} records were"


def _percent(part: int, whole: int) -> str:
    """Write a share in percent; only an exact 0 or 1 is written as 0 % or 100 %."""
    if not part or part == whole:
        return "100 %" if part else "0 %"
    share = min(max(100 * part / whole, 0.01), 99.99)
    return f"{share:.2f} %" if share < 1 or share > _COMMON * 100 else f"{share:.0f} %"
