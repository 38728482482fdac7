"""Gauss-Legendre quadrature on [0, 1].

Problem. Nodes λ_k and weights w_k with Σ_k w_k f(λ_k) = ∫ f(λ) dλ over [0, 1] for polynomials f of
degree at most 2n - 1, correctly rounded up to 2**-53.

Algorithm. float64 nodes of numpy are improved by Newton's method in decimals of 50 digits; each
step squares the error. With the Legendre polynomial P_n at x = 2λ - 1, w = (1 - x²) / (n P_{n-1})².

Reference. Davis and Rabinowitz, Methods of Numerical Integration, 2.7.

Cost. O(N³) for all rules of up to N nodes, once in a process.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Rules of 1 to 32 nodes: exact up to degree 63. Longer rules are replaced by shorter panels.
MAX_NODES = 32
_DIGITS = 50
_NEWTON_STEPS = 3


class Rules(NamedTuple):
    """The rules of 1 to `MAX_NODES` nodes; that of n nodes begins at n (n - 1) / 2.

    Attributes
    ----------
    nodes, weights : ndarray of float64
        Nodes in [0, 1] and weights, which sum to 1 for each rule.
    """

    nodes: NDArray[np.float64]
    weights: NDArray[np.float64]


@lru_cache(maxsize=1)
def gauss_rules() -> Rules:
    """Return the rules; they are computed on the first call."""
    nodes: list[float] = []
    weights: list[float] = []
    with localcontext(Context(prec=_DIGITS)):
        for count in range(1, MAX_NODES + 1):
            guesses, _ = np.polynomial.legendre.leggauss(count)
            for guess in guesses.tolist():
                node, weight = _refine(count, Decimal(guess))
                nodes.append(float(node))
                weights.append(float(weight))
    rules = Rules(np.array(nodes), np.array(weights))
    for column in rules:
        column.flags.writeable = False
    return rules


def _refine(count: int, x: Decimal) -> tuple[Decimal, Decimal]:
    """Return a node in [0, 1] and its weight from an approximate root of P_count in [-1, 1]."""
    for _ in range(_NEWTON_STEPS):
        before, value = _legendre(count, x)
        x -= value * (x * x - 1) / (count * (x * value - before))
    before, _ = _legendre(count, x)
    return (1 + x) / 2, (1 - x * x) / (count * before) ** 2


def _legendre(count: int, x: Decimal) -> tuple[Decimal, Decimal]:
    """Compute P_{count - 1} and P_count at x."""
    before, value = Decimal(1), x
    for n in range(2, count + 1):
        before, value = value, ((2 * n - 1) * x * value - (n - 1) * before) / n
    return before, value
