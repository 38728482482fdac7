"""The work of an analysis is limited, and kept analyses are limited by their size."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from correlation.errors import InvalidFieldError
from correlation.event_query.language.limits import MAX_CHARACTERS
from correlation.event_query.language.parser import parse_query
from correlation.event_query.relevance import cached
from correlation.event_query.relevance.analysis import analyse_relevance
from correlation.event_query.relevance.cached import RelevanceCache
from correlation.event_query.relevance.closure import StreamTimes
from correlation.event_query.relevance.work import STEP_LIMIT, Work
from tests.support.event_queries import ALARM, ALARM_STREAMS

if TYPE_CHECKING:
    from types import FrameType

    from correlation.event_query.query import Query

TYPES = {"A": StreamTimes("a")}
LIMIT = 200_000


def head(positive: int, negated: int = 0) -> str:
    events = [f"event p{i}: A" for i in range(positive)]
    events += [f"not event n{i}: A" for i in range(negated)]
    return f"DETECT R ON {' '.join(events)} WHERE "


def filled(begin: str, parts: list[str], join: str = ", ", end: str = " END") -> str:
    """Return a query near the maximum length, with as many parts as fit."""
    size = len(begin) + len(end)
    taken = []
    for part in parts * (MAX_CHARACTERS // len(parts[0])):
        # The canonical text is longer: it writes 25 h as 1 d + 1 h.
        size += len(part) + len(join) + 12
        if size > MAX_CHARACTERS:
            break
        taken.append(part)
    return begin + join.join(taken) + end


def chosen(aliases: list[str]) -> list[str]:
    """Return 8 alternatives that do not contradict: 256 clauses."""
    return [
        f"({aliases[i % len(aliases)]}.rt.end <= p0.rt.end + {i} s "
        f"or {aliases[i % len(aliases)]}.rt.begin > p0.rt.end + {i + 20} min)"
        for i in range(8)
    ]


def related(count: int) -> list[str]:
    points = [f"p{i}.rt.{side}" for i in range(count) for side in ("begin", "end")]
    return [
        f"{p} <= {q} + {number + 8} h"
        for number, (p, q) in enumerate((p, q) for p in points for q in points if p[:-4] != q[:-4])
    ]


ALIASES = [f"p{i}" for i in range(1, 16)]
TEXTS = {
    "clauses of many atoms": filled(head(16) + ", ".join(chosen(ALIASES)) + ", ", related(16)),
    "the same for each negated event": filled(
        head(8, 8) + ", ".join(chosen(ALIASES[:7])) + ", ", related(8)
    ),
    "minima of maxima": filled(
        head(16) + "max(" + ", ".join(["p1.rt.end", "p2.rt.begin"] * 1500) + ") <= min(",
        [f"{alias}.rt.end" for alias in ALIASES],
        end=") END",
    ),
    "products that contradict": filled(
        head(16) + ", ".join(chosen(ALIASES)) + ", ",
        [f"(p{i}.rt.end <= p0.rt.end or p{i}.rt.end < p{i + 1}.rt.end)" for i in range(1, 15)],
    ),
    "a disjunction of equal clauses": filled(
        head(16) + ", ".join(related(16)[:500]) + ", ", ["(p1.rt.end = p2.rt.end)"], " or "
    ),
    "unrelated events": head(16) + ", ".join(chosen(ALIASES)) + " END",
}


def calls_of_analysis(query: Query, work: Work) -> tuple[int, str]:
    """Return the number of calls of functions, and the problem of a refusal."""
    calls, problem = 0, ""

    def count(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - given
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        analyse_relevance(query, TYPES, work)
    except InvalidFieldError as error:
        problem = error.problem
    finally:
        sys.setprofile(before)
    return calls, problem


@pytest.mark.parametrize("name", TEXTS)
def test_counted_steps_limit_the_work_of_texts_of_any_size(name: str) -> None:
    work = Work(LIMIT)
    calls, problem = calls_of_analysis(parse_query(TEXTS[name]), work)
    # Steps are counted before they are taken. Reading the formula needs calls in proportion to its
    # length, before any step.
    assert calls < LIMIT + 20 * len(TEXTS[name])
    assert problem


def test_the_limit_allows_256_clauses_over_16_events() -> None:
    near = [f"{p}.rt.end <= {q}.rt.end + 9 h" for i in ALIASES for p, q in ((i, "p0"), ("p0", i))]
    aliases = [f"{alias}" for alias in ALIASES]
    text = head(16) + ", ".join([*near, *(it.replace("begin", "end") for it in chosen(aliases))])
    work = Work()
    found = analyse_relevance(parse_query(f"{text} END"), {"A": StreamTimes("a", 0, 0)}, work)
    assert len(found.inputs[0].closures) == 256
    assert STEP_LIMIT / 2 < work.steps <= STEP_LIMIT


def test_an_analysis_and_a_refusal_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RelevanceCache()
    first = cache.analyse(ALARM, ALARM_STREAMS)
    refused = parse_query("DETECT R ON event a: A event b: A END")
    problems = []
    for _ in range(2):
        with pytest.raises(InvalidFieldError, match="stream a") as caught:
            cache.analyse(refused, TYPES)
        problems.append([(it.field, it.problem, it.remedy) for it in caught.value.problems])
        # The second round finds both in the cache.
        monkeypatch.delattr(cached, "analyse_relevance", raising=False)
    assert problems[0] == problems[1]
    assert cache.analyse(ALARM, ALARM_STREAMS) is first


def test_kept_analyses_are_limited_by_their_distances() -> None:
    # One clause over two points, and one over four, for each alarm: 4 + 16 distances.
    cache = RelevanceCache(50)
    streams = [{**ALARM_STREAMS, "Smoke": StreamTimes(f"s{i}", 0, 0)} for i in range(4)]
    found = [cache.analyse(ALARM, it) for it in streams]
    assert cache.distances() == 40
    # The last two are kept; the first is analysed again, and replaces the third.
    assert cache.analyse(ALARM, streams[3]) is found[3]
    assert cache.analyse(ALARM, streams[0]) is not found[0]
    assert cache.analyse(ALARM, streams[3]) is found[3]
    assert cache.analyse(ALARM, streams[2]) is not found[2]


def test_an_analysis_beyond_the_limit_is_not_kept() -> None:
    cache = RelevanceCache(19)
    assert cache.analyse(ALARM, ALARM_STREAMS) == cache.analyse(ALARM, ALARM_STREAMS)
    assert cache.distances() == 0
