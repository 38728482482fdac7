"""Keys, minimum keys and bounds of similarities, against rational numbers and definitions."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from correlation.topk.similarities import (
    MINIMUM_PLACES,
    OVERLAP,
    SIMILARITIES,
    SIZE_LIMIT,
    TABLE_SIZES,
    Key,
    Similarity,
    find_problem,
    key_table,
    quotient_key,
)
from correlation.topk.well_behaved import find_wrong_key
from tests.support.messages import assert_names
from tests.support.topk_joins import NAMES

ROOT = Path(__file__).parents[4]
# Overlap and sizes of two sets.
Sizes = tuple[int, int, int]
SMALL = [(o, r, s) for r in range(1, 13) for s in range(1, 13) for o in range(1, min(r, s) + 1)]


def exact(name: str, sizes: Sizes) -> Fraction:
    """Return a number with the order of the similarity: cosine is squared, hamming negative."""
    o, r, s = sizes
    return {
        "jaccard": Fraction(o, r + s - o),
        "cosine": Fraction(o * o, r * s),
        "dice": Fraction(2 * o, r + s),
        "overlap": Fraction(o),
        "hamming": Fraction(2 * o - r - s),
    }[name]


@st.composite
def drawn_sizes(draw: st.DrawFn) -> Sizes:
    """Draw sizes up to the limit, often at the limit, and an overlap."""
    size = st.integers(1, SIZE_LIMIT) | st.integers(SIZE_LIMIT - 5, SIZE_LIMIT)
    r, s = draw(size), draw(size)
    fewer = draw(st.integers(0, min(r, s) - 1) | st.integers(0, min(4, min(r, s) - 1)))
    return min(r, s) - fewer, r, s


@pytest.mark.parametrize("name", NAMES)
def test_p_topk_key_orders_pairs_as_the_similarity(name: str) -> None:
    key = SIMILARITIES[name].key
    for one, other in pairwise(sorted(SMALL, key=lambda it: exact(name, it))):
        equal = exact(name, one) == exact(name, other)
        assert (key(*one) == key(*other)) is equal
        assert key(*one) <= key(*other)
    assert min(key(*it) for it in SMALL) >= 0


@pytest.mark.parametrize("name", NAMES)
@given(one=drawn_sizes(), other=drawn_sizes())
def test_p_topk_key_orders_pairs_of_all_sizes(name: str, one: Sizes, other: Sizes) -> None:
    key = SIMILARITIES[name].key
    assert (key(*one) > key(*other)) is (exact(name, one) > exact(name, other))
    assert (key(*one) == key(*other)) is (exact(name, one) == exact(name, other))
    assert key(*one) >= 0


@given(st.integers(2**27 - 1000, 2**27 - 1), st.integers(1, 999))
def test_p_topk_key_separates_the_closest_quotients(denominator: int, step: int) -> None:
    other = denominator - step
    common = Fraction(denominator, other).denominator
    if common != other:
        return
    # numerator / denominator − rest / other = 1 / (denominator · other).
    numerator = pow(other, -1, denominator)
    rest = (numerator * other - 1) // denominator
    assert quotient_key(numerator, denominator) == quotient_key(rest, other) + 1
    for n, d in ((numerator, denominator), (rest, other), (other, other), (0, other)):
        assert quotient_key(n, d) == (n << 54) // d


@pytest.mark.parametrize("name", NAMES)
@given(sizes=drawn_sizes(), data=st.data())
def test_p_topk_key_of_minimum_is_exact(name: str, sizes: Sizes, data: st.DataObject) -> None:
    similarity = SIMILARITIES[name]
    scale = 10**MINIMUM_PLACES
    value = similarity.value(*sizes)
    # A decimal beside the similarity of the pair, or another one.
    near = int(value * scale) + data.draw(st.integers(-1, 1))
    limit = 2 * SIZE_LIMIT * scale if value > 1 else scale
    minimum = (
        Fraction(max(near, 0), scale)
        if data.draw(st.booleans())
        else Fraction(data.draw(st.integers(0, limit)), scale)
    )
    reaches = similarity.key(*sizes) >= similarity.minimum_key(minimum)
    bound = {"cosine": minimum**2, "hamming": -minimum}.get(name, minimum)
    assert reaches is (exact(name, sizes) >= bound)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("jaccard", [1 / 4, 1.0, 2 / 5]),
        ("cosine", [1 / 6**0.5, 1.0, 2 / 12**0.5]),
        ("dice", [2 / 5, 1.0, 4 / 7]),
        ("overlap", [1, 3, 2]),
        ("hamming", [3, 0, 3]),
    ],
)
def test_value_is_the_similarity(name: str, values: list[float]) -> None:
    similarity = SIMILARITIES[name]
    found = [similarity.value(*it) for it in ((1, 2, 3), (3, 3, 3), (2, 3, 4))]
    assert found == pytest.approx(values, abs=0, rel=1e-15)
    assert similarity.is_distance is (name == "hamming")


@pytest.mark.parametrize("name", NAMES)
def test_upper_bound_is_the_largest_key_of_a_set_that_lacks_tokens(name: str) -> None:
    similarity = SIMILARITIES[name]
    for size in range(1, 9):
        for absent in range(size):
            keys = [
                similarity.key(o, size, s)
                for o in range(1, size - absent + 1)
                for s in range(o, 20)
            ]
            # Theorem 5.1 of SWOOP: the search stops at this key.
            rest = size - absent
            assert similarity.key(rest, size, rest) == max(keys)


@pytest.mark.parametrize("name", NAMES)
def test_overlap_needed_is_the_smallest_that_reaches_the_key(name: str) -> None:
    similarity = SIMILARITIES[name]
    keys = sorted({similarity.key(*it) for it in SMALL if it[1] < 7})
    for key in [0, *keys, keys[-1] + 1]:
        for r, s in ((1, 1), (3, 5), (6, 4)):
            reaching = [o for o in range(1, min(r, s) + 1) if similarity.key(o, r, s) >= key]
            assert similarity.overlap_needed(key, r, s) == (min(reaching) if reaching else None)


@pytest.mark.parametrize("name", NAMES)
def test_table_has_the_keys_of_small_sets(name: str) -> None:
    table = key_table(SIMILARITIES[name]).reshape((TABLE_SIZES,) * 3)
    for o, r, s in [*SMALL, (31, 31, 31), (1, 31, 2)]:
        assert table[r, s, o] == SIMILARITIES[name].key(o, r, s)
    assert table[3, 2, 3] == table[0, 0, 0] == table[5, 5, 0] == -1
    assert not table.flags.writeable


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of a folder."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(  # noqa: S603 - the code is that of the tests
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )


def test_similarity_of_an_entry_point_is_registered() -> None:
    code = """
import numpy as np
from correlation.topk.similarities import SIMILARITIES
from correlation.topk.join.join import TopKJoin
from correlation.topk.join.state import Block
join = TopKJoin(2, 9, SIMILARITIES["containment"])
offsets, tokens = np.array([0, 4, 6, 7]), np.array([1, 2, 3, 4, 2, 5, 3], np.int32)
join.insert(Block(np.arange(3), np.zeros(3, np.int8), offsets, tokens), 2)
print([*SIMILARITIES][-1], *(column.tolist() for column in join.list_pairs()))
"""
    done = run(code, ROOT / "tests" / "toy")
    assert done.stdout == f"containment {[2**54, 2**53]} [0, 0] [2, 1]\n", done.stderr


HEAD = """
from types import SimpleNamespace
from correlation.topk.similarities import DICE, KEY_SIGNATURE, Similarity
"""


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("X = DICE", ["'dice'", "already registered"]),
        ("X = 'dice'", ["Similarity", "got str"]),
        ("X = SimpleNamespace(name='x')", ["Similarity", "got SimpleNamespace"]),
        ("Y = DICE", ["AttributeError", "'second_similarity'", "'X'"]),
        ("import absent_module", ["ModuleNotFoundError", "'absent_module'"]),
        (
            "X = Similarity('x', lambda o, r, s: 1 // (r - 2), float, int)",
            ["ZeroDivisionError"],
        ),
        (
            "X = Similarity('x', lambda o, r, s: o * max(r, s), float, int)",
            ["grow with a size", "key(1, 1, 1) is 1", "key(1, 1, 2) is 2"],
        ),
    ],
)
def test_similarity_that_cannot_be_used_is_refused(
    tmp_path: Path, code: str, names: list[str]
) -> None:
    folder = tmp_path / "second-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: second\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[coincide.similarities]\nx = second_similarity:X\n")
    (tmp_path / "second_similarity.py").write_text(HEAD + code)
    done = run("import correlation.kinds", tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("correlation.errors.InvalidSimilarityError: second_similarity:X: ")
    assert_names(last, *names)


@pytest.mark.skipif(
    not hasattr(OVERLAP.key, "nopython_signatures"), reason="keys are plain functions without JIT"
)
def test_key_that_is_not_compiled_with_the_signature_is_refused() -> None:
    for key in (lambda o, _r, _s: o, "o", njit(lambda o, _r, _s: o)):
        similarity = Similarity("other", key, OVERLAP.value, OVERLAP.minimum_key)  # type: ignore[arg-type]
        assert_names(find_problem(similarity), "key", "numba.njit(KEY_SIGNATURE)")


@pytest.mark.parametrize(
    ("key", "names"),
    [
        (lambda o, r, s: o - r - s, ["0 to 2**62", "key(1, 1, 1) is -1"]),
        (
            lambda o, r, s: o if max(r, s) < 13 else 2**62 + o,
            ["0 to 2**62", "key(1, 1, 31) is 4611686018427387905"],
        ),
        (lambda o, _r, _s: o / 1, ["0 to 2**62", "key(1, 1, 1) is 1.0"]),
        (
            lambda o, r, _s: 10 * o + 100 - min(r, 90),
            ["symmetric", "key(1, 1, 2) is 109", "key(1, 2, 1) is 108"],
        ),
        (
            lambda o, _r, _s: min(o, 2),
            ["must grow", "overlap", "key(2, 3, 3) is 2", "key(3, 3, 3) is 2"],
        ),
        (
            lambda o, r, s: o * max(r, s),
            ["must not grow", "size", "key(1, 1, 1) is 1", "key(1, 1, 2) is 2"],
        ),
        (
            # A property that only some sizes lack.
            lambda o, r, s: o + ((r, s) == (12, 11)) + ((r, s) == (11, 12)),
            ["must not grow", "size", "key(1, 11, 11) is 1", "key(1, 11, 12) is 2"],
        ),
        (
            # Penalty for equal sizes, which grows with the sizes.
            lambda o, r, s: 10**6 + o - 3 * min(r, s),
            ["not decrease", "o grows", "key(1, 2, 1) is 999998", "key(2, 2, 2) is"],
        ),
    ],
)
def test_p_topk_bound_every_missing_property_is_found(key: Key, names: list[str]) -> None:
    assert_names(find_wrong_key(key, [*range(1, 13), 31]), *names)


UNFIT = ["minimum_key", "key(1, 1, 1)"]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, None),
        ({"name": "No Name"}, ["name", "'No Name'", "1 to 63"]),
        ({"value": lambda _o, _r, _s: math.inf}, ["finite", "value(1, 1, 1) is inf"]),
        ({"value": lambda _o, _r, _s: "1"}, ["finite", "value(1, 1, 1) is '1'"]),
        (
            {"minimum_key": math.floor},
            [*UNFIT, "reaches minimum_key(1.0001)", "value is 1"],
        ),
        (
            {"minimum_key": lambda it: math.ceil(it) + 1},
            [*UNFIT, "does not reach minimum_key(0.9999)", "value is 1"],
        ),
        ({"is_distance": True}, UNFIT),
    ],
)
def test_functions_that_do_not_fit_are_found(
    changes: Mapping[str, object], names: list[str] | None
) -> None:
    found = find_problem(replace(OVERLAP, **{"name": "other", **changes}))  # type: ignore[arg-type]
    assert (found is None) == (names is None)
    assert_names(found, *(names or ()))


@pytest.mark.parametrize("name", NAMES)
def test_similarities_of_this_package_pass_the_check(name: str) -> None:
    assert find_problem(SIMILARITIES[name]) is None
