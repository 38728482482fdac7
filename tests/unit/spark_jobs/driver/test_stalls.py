"""The pace of a query, from times alone: fine, stalled, hanging."""

from __future__ import annotations

from itertools import pairwise

from spark_jobs.driver.stalls import Pace, StallWatch

STALLED, HANGING, STEP = 10.0, 20.0, 1.0


class Driver:
    """Looks at a query every half second, from time 100 on."""

    def __init__(self, *, completed: bool = True) -> None:
        self.now = 100.0
        self.watch = StallWatch(STALLED, HANGING, STEP, self.now)
        if completed:
            self.watch.complete()

    def look(self, seconds: float) -> list[Pace]:
        """Look for a time; return the paces in their order, without repeats."""
        found = []
        for _ in range(int(seconds / 0.5)):
            self.now += 0.5
            found.append(self.watch.look(self.now))
        return [found[0], *(it for before, it in pairwise(found) if it is not before)]


def test_query_with_unread_records_is_stalled_then_hangs_without_a_batch() -> None:
    driver = Driver()
    driver.watch.wait(is_waiting=True)
    assert driver.look(9.5) == [Pace.FINE]
    assert driver.look(10) == [Pace.STALLED]
    assert driver.watch.waited_seconds == 19.5
    assert driver.look(0.5) == [Pace.HANGING]


def test_completed_batch_ends_a_stall() -> None:
    driver = Driver()
    driver.watch.wait(is_waiting=True)
    assert driver.look(15) == [Pace.FINE, Pace.STALLED]
    driver.watch.complete()
    assert driver.look(60) == [Pace.FINE]
    driver.watch.wait(is_waiting=True)
    assert driver.look(9.5) == [Pace.FINE]


def test_query_that_completes_batches_is_fine_however_many_records_are_unread() -> None:
    driver = Driver()
    for _ in range(10):
        driver.watch.wait(is_waiting=True)
        assert driver.look(9.5) == [Pace.FINE]
        driver.watch.complete()


def test_time_without_work_does_not_count() -> None:
    driver = Driver()
    driver.watch.wait(is_waiting=False)
    assert driver.look(3_600) == [Pace.FINE]
    driver.watch.wait(is_waiting=True)
    assert driver.look(9.5) == [Pace.FINE]
    driver.watch.wait(is_waiting=False)
    driver.watch.wait(is_waiting=True)
    assert driver.look(9.5) == [Pace.FINE]


def test_query_before_its_first_batch_is_not_stalled_but_may_hang() -> None:
    driver = Driver(completed=False)
    driver.watch.wait(is_waiting=True)
    assert driver.look(30) == [Pace.FINE, Pace.HANGING]


def test_time_in_which_the_driver_did_not_look_does_not_count() -> None:
    driver = Driver()
    driver.watch.wait(is_waiting=True)
    driver.look(5)
    driver.now += 3_600
    assert driver.watch.look(driver.now) is Pace.FINE
    assert driver.watch.waited_seconds == 6.0
