"""Workers of a machine know which of them has opened a producer of a partition last."""

from __future__ import annotations

from multiprocessing import get_context

from spark_jobs.sink.last_worker import is_this_worker, note_this_worker


def test_note_of_one_worker_replaces_that_of_another() -> None:
    assert not is_this_worker(3)
    note_this_worker(3)
    note_this_worker(4)
    assert is_this_worker(3)
    other = get_context("fork").Process(target=note_this_worker, args=(3,))
    other.start()
    other.join()
    assert other.exitcode == 0
    assert not is_this_worker(3)
    assert is_this_worker(4)
    note_this_worker(3)
    assert is_this_worker(3)
