"""Seeds of the crash matrix."""

from __future__ import annotations

from tests.crash.faults import CLUSTER_SEED, LOSS_SEED, Moment, Victim, Way, draw_fault, victims_of


def cells(begin: int, count: int) -> set[tuple[Victim, Moment]]:
    """Return the cells of the matrix at which consecutive seeds aim."""
    return {(it.victim, it.moment) for it in map(draw_fault, range(begin, begin + count))}


def test_consecutive_seeds_aim_at_every_cell_of_the_matrix() -> None:
    for seed, count in ((100, 42), (CLUSTER_SEED, 63), (LOSS_SEED, 7)):
        found = {(it, moment) for it in victims_of(seed) for moment in Moment}
        assert cells(seed, count) == found
        assert len(found) == count
    assert {*victims_of(CLUSTER_SEED), *victims_of(LOSS_SEED)} == set(Victim)


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
    assert draw_fault(LOSS_SEED).way is Way.LOSE
