"""Seeds of the crash matrix."""

from __future__ import annotations

from tests.crash.faults import CLUSTER_SEED, Moment, Victim, Way, draw_fault


def cells(begin: int, count: int) -> set[tuple[Victim, Moment]]:
    """Return the cells of the matrix at which consecutive seeds aim."""
    return {(it.victim, it.moment) for it in map(draw_fault, range(begin, begin + count))}


def test_consecutive_seeds_aim_at_every_cell_of_the_matrix() -> None:
    local = [it for it in Victim if not it.needs_cluster]
    assert cells(100, 42) == {(it, moment) for it in local for moment in Moment}
    assert cells(CLUSTER_SEED, 63) == {(it, moment) for it in Victim for moment in Moment}


def test_seed_always_draws_the_same_fault() -> None:
    assert draw_fault(9) == draw_fault(9)
    assert str(draw_fault(9)).startswith("seed 9: broker, in the transaction, ")
    assert str(draw_fault(9)).endswith("kill -9 2.5 s")


def test_processes_are_killed_or_stopped_and_connections_disturbed() -> None:
    found = {(it.victim is Victim.CONNECTION, it.way) for it in map(draw_fault, range(200))}
    assert found == {
        (False, Way.KILL),
        (False, Way.STOP),
        (True, Way.CUT),
        (True, Way.DELAY),
        (True, Way.THROTTLE),
    }
