"""Drawing of an explained pair of events on one time axis."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from correlation.drawing import WIDTH
from correlation.explaining import GivenRecord
from correlation.kinds import KINDS, condition_from_document
from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.streams import Stream
from correlation.timing.drawing import draw_explanation, draw_pair

SECOND = 1_000_000
NOON_US = 1_767_268_800_000_000
NEAR = {"kind": "mutual_deadline", "window_us": 3 * SECOND, "threshold": "0.6"}


def explain(
    a: tuple[int, int],
    b: tuple[int, int],
    /,
    max_uncertainty_us: int = 2 * SECOND,
    **changes: object,
) -> dict[str, Any]:
    document = {**NEAR, "a": "acoustic", "b": "seismic", **changes}
    condition = condition_from_document("footsteps", 1, document)
    streams = {
        name: Stream(name, name, max_uncertainty_us, SECOND, clock="replay")
        for name in condition.streams
    }
    records = {
        role: GivenRecord({"id": event_id, "key": "k", "earliest": span[0], "latest": span[1]})
        for role, event_id, span in (("a", "mic-1", a), ("b", "geo-7", b))
    }
    kind = KINDS[condition.kind]
    common = {"condition": "footsteps", "version": 1, "kind": kind.name}
    answer = kind.explain(condition, streams, records)
    return {**common, "roles": list(kind.roles(condition)), **answer}


@st.composite
def pairs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an explanation of any two events, far apart or near, in any unit."""
    scale = draw(st.sampled_from([1, 1_000, SECOND, 3600 * SECOND]))
    latest = draw(st.integers(-TIME_LIMIT_US // 4, TIME_LIMIT_US // 4))
    apart = draw(st.integers(-100, 100)) * scale + draw(st.sampled_from([0, 0, 1, 2**55]))
    lengths = [draw(st.integers(0, min(50 * scale, LENGTH_LIMIT_US))) for _ in "ab"]
    window = min(draw(st.integers(0, 100)) * scale, DURATION_LIMIT_US)
    end = latest + apart
    changes: dict[str, Any] = {}
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["deadline", "delay"]))
        changes = {"kind": kind, f"{kind}_us": window // 2, "horizon_us": window}
    return explain(
        (latest - lengths[0], latest),
        (end - lengths[1], end),
        max_uncertainty_us=max(lengths),
        window_us=window,
        **changes,
    )


@given(pairs())
def test_picture_fits_and_is_true_to_scale(answer: dict[str, Any]) -> None:
    lines = draw_pair(answer)
    assert all(len(line) <= WIDTH for line in lines)
    rows = {line[:11].strip(): line[11:] for line in lines[:5]}
    bars = {}
    for role, sign, span in (
        ("A", "█", (answer["a"]["earliest"], answer["a"]["latest"])),
        ("B", "█", (answer["b"]["earliest"], answer["b"]["latest"])),
        ("B ends", "▲", (answer["b"]["latest"],) * 2),
    ):
        first, last = rows[role].find(sign), rows[role].rfind(sign)
        assert first >= 0
        assert rows[role][first : last + 1] == sign * (last - first + 1)
        bars[role] = (first, last, span)
    # Equal times are in equal columns; between any two the columns are in proportion.
    ends = [
        (column, time)
        for first, last, span in bars.values()
        for column, time in ((first, span[0]), (last, span[1]))
    ]
    widest = max(ends, key=lambda end: end[1])[1] - min(ends, key=lambda end: end[1])[1]
    low, high = min(ends), max(ends)
    for column, time in ends:
        if widest and high[0] > low[0]:
            expected = low[0] + (time - low[1]) / (high[1] - low[1]) * (high[0] - low[0])
            assert abs(column - expected) <= 2
    # The axis has its zero, where A ends.
    axis, labels = lines[-2], lines[-1].ljust(WIDTH)
    zero = 11 + bars["A"][1]
    assert axis[zero] == "┼"
    assert "0" in labels[max(0, zero - 3) : zero + 4]


def test_columns_of_the_table_are_aligned_and_empty_regions_have_no_ends() -> None:
    # A certain time of A, and a window that is shorter than the uncertainty of B.
    lines = draw_explanation(explain((0, 0), (0, 2 * SECOND), window_us=SECOND // 10))
    begin = next(number for number, it in enumerate(lines) if it.text.startswith("base event"))
    titles, base_a, base_b = (it.text for it in lines[begin : begin + 3])
    assert [it.style for it in lines[begin : begin + 3]] == ["legend", "drawing", "drawing"]
    assert base_a.split()[0] == "A"
    assert base_b.split()[0] == "B"
    assert "none" in base_a
    for title in ("LH", "LL", "RL", "RH"):
        end = titles.index(title) + len(title)
        # Right-aligned: a cell ends below its title.
        assert all(not row[end - 1].isspace() and row[end].isspace() for row in (base_a, base_b))
