"""Seeds of the crash matrix."""

from __future__ import annotations

from tests.crash.faults import Moment, Victim, Way, draw_fault


def test_consecutive_seeds_aim_at_every_cell_of_the_matrix() -> None:
    cells = {(it.victim, it.moment) for it in map(draw_fault, range(100, 142))}
    assert len(cells) == len(Victim) * len(Moment) == 42


def test_seed_always_draws_the_same_fault() -> None:
    assert draw_fault(9) == draw_fault(9)
    assert str(draw_fault(9)) == "seed 9: broker, in the transaction, kill -9 2.5 s"


def test_processes_are_killed_or_stopped_and_connections_disturbed() -> None:
    found = {(it.victim is Victim.CONNECTION, it.way) for it in map(draw_fault, range(200))}
    assert found == {
        (False, Way.KILL),
        (False, Way.STOP),
        (True, Way.CUT),
        (True, Way.DELAY),
        (True, Way.THROTTLE),
    }
