"""Facts of a stream compared with its declaration: merged in any order, kept, and reset."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.events import Events
from correlation.engine.contract import ContractFacts, Spread, declaration
from correlation.engine.program import Block, Program
from correlation.engine.totals import Totals
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from tests.support.contract import facts_of

SECOND = 1_000_000
STREAM = Stream("s", "s", max_uncertainty_us=2 * SECOND, max_delay_us=10 * SECOND)
DURATIONS = st.lists(st.integers(-5 * SECOND, 4000 * SECOND), min_size=1, max_size=60)


def spread(durations_us: list[int]) -> Spread:
    found = Spread.of(np.array(durations_us, np.int64))
    assert found is not None
    return found


@given(DURATIONS, st.sampled_from([0.001, 0.5, 0.9, 0.99, 0.999, 1.0]))
def test_quantile_is_within_its_bucket_and_never_under(durations: list[int], share: float) -> None:
    found = spread(durations).quantile(share)
    enough = sorted(durations)[max(0, int(np.ceil(share * len(durations) - 1e-9)) - 1)]
    assert enough <= found.at_most_us
    assert min(durations) <= found.estimate_us <= found.at_most_us <= max(durations)


def test_quantiles_of_evenly_spread_durations_are_near() -> None:
    found = spread(list(range(0, 10 * SECOND, 1000)))
    for share in (0.1, 0.5, 0.9, 0.99):
        assert found.quantile(share).estimate_us == pytest.approx(share * 10 * SECOND, rel=0.01)
    assert found.quantile(0.3).at_most_us == 5 * SECOND


@given(DURATIONS, DURATIONS, st.integers(0, 3))
def test_facts_of_parts_merge_to_those_of_all(one: list[int], two: list[int], late: int) -> None:
    def of(durations: list[int]) -> ContractFacts:
        lengths = [abs(duration) for duration in durations]
        return facts_of(STREAM, lengths, durations, late, {"missing_key": late} if late else {})

    both = of(one + two)
    doubled = replace(both, late=2 * late, rejected={"missing_key": 2 * late} if late else {})
    assert of(one).merged(of(two)) == of(two).merged(of(one)) == doubled
    stored = json.loads(json.dumps(doubled.to_record()))
    assert ContractFacts.from_record(stored) == doubled


def test_events_near_a_limit_are_counted() -> None:
    stream = replace(STREAM, min_uncertainty_us=SECOND)
    lengths = [SECOND, 1_100_000, 1_100_001, 1_799_999, 1_800_000, 2 * SECOND]
    delays = [-1, 8_999_999, 9 * SECOND, 10 * SECOND, 11 * SECOND, 0]
    found = facts_of(stream, lengths, delays)
    assert found.near == {"min_uncertainty": 2, "max_uncertainty": 2, "max_delay": 3}
    assert found.lengths is not None
    assert (found.lengths.min_us, found.lengths.max_us) == (SECOND, 2 * SECOND)
    assert found.delays is not None
    assert (found.delays.min_us, found.delays.max_us) == (-1, 11 * SECOND)


def test_totals_begin_anew_when_the_declaration_changes() -> None:
    totals = Totals()
    totals.add_facts("s", facts_of(STREAM, [1], [2]))
    totals.add_facts("s", facts_of(STREAM, [3], [4]))
    assert totals.to_record()["contracts"]["s"]["events"] == 2
    other = replace(STREAM, max_uncertainty_us=SECOND)
    totals.add_facts("s", facts_of(other, [5], [6]))
    found = totals.to_record()["contracts"]["s"]
    assert (found["events"], found["lengths"][:2]) == (1, [5, 5])
    totals.keep_facts({"s": other})
    assert totals.to_record()["contracts"]
    totals.keep_facts({"s": STREAM})
    assert totals.to_record()["contracts"] == {}


def test_totals_are_read_back() -> None:
    totals = Totals()
    totals.count("n_total", {}, 3)
    totals.observe("waited_seconds", {"stream": "s"}, np.array([1, 2_000_000]))
    totals.add_facts("s", facts_of(STREAM, [1], [2]))
    read = Totals()
    read.load(json.loads(json.dumps(totals.dump())))
    assert read.to_record() == totals.to_record()


def test_facts_with_other_buckets_are_not_read() -> None:
    record = facts_of(STREAM, [1], [2]).to_record()
    with pytest.raises(ValueError, match="20 buckets; got 1"):
        ContractFacts.from_record({**record, "lengths": [1, 2, 3]})


def _block(*latest: int, rejected: dict[tuple[str, str], int] | None = None) -> Block:
    rows = [
        (b"k", b"%d" % i, end - SECOND, end, 0, i, end + 2 * SECOND) for i, end in enumerate(latest)
    ]
    return Block(events=[Events.from_rows("s", rows)], rejected=rejected or {})


def test_program_neither_loses_nor_doubles_facts() -> None:
    blocks = [
        _block(1, 2, rejected={("s", "missing_key"): 2, ("gone", "missing_key"): 1}),
        _block(3, rejected={("s", "missing_key"): 1, ("s", "malformed_json"): 1}),
        _block(4, 5, 6),
    ]
    streams, partitions = {"s": STREAM}, {"s": 1}

    def restarted(program: Program) -> Program:
        manifest = json.loads(json.dumps(program.snapshot().manifest))
        return Program.restore(manifest, lambda _: b"", streams, partitions)

    program, plain = Program(streams, partitions), Program(streams, partitions)
    for block in blocks:
        # A batch that is given up and repeated: what it left of the state is not kept.
        before = json.loads(json.dumps(program.snapshot().manifest))
        program.advance(block, lambda: 0)
        program = Program.restore(before, lambda _: b"", streams, partitions)
        outcome = program.advance(block, lambda: 0)
        assert outcome.metrics["contracts"] == plain.advance(block, lambda: 0).metrics["contracts"]
        program = restarted(program)
    found = ContractFacts.from_record(outcome.metrics["contracts"]["s"])
    assert (found.events, found.rejected) == (6, {"missing_key": 3, "malformed_json": 1})
    assert found.near == {}
    assert found.delays == spread([2 * SECOND] * 6)
    # Declared again, it begins again, also before the next event.
    streams["s"] = replace(STREAM, max_delay_us=SECOND)
    program = restarted(program)
    assert program.advance(Block(), lambda: 0).metrics["contracts"] == {}
    found = ContractFacts.from_record(
        program.advance(_block(7), lambda: 0).metrics["contracts"]["s"]
    )
    assert (found.events, found.near["max_delay"]) == (1, 1)


def test_recorded_streams_have_no_delays() -> None:
    stream = replace(STREAM, clock="replay")
    program = Program({"s": stream}, {"s": 1})
    found = program.advance(_block(1), lambda: 0).metrics["contracts"]["s"]
    assert found["delays"] is None
    assert "max_delay" not in found["near"]


def test_facts_depend_on_the_declared_tokens() -> None:
    words, same, ngrams = (
        declaration(replace(STREAM, tokens=Tokens(("t",), tokenizer)))["tokens"]
        for tokenizer in ("words", "words", "ngrams:2")
    )
    assert (words == same, words == ngrams) == (True, False)
    # Facts of streams without tokens are those of earlier versions.
    assert "tokens" not in declaration(STREAM)
