"""What is lost of topics that are recreated or truncated, as far as it was seen."""

from __future__ import annotations

from spark_jobs.known_offsets import KnownOffsets

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


def test_unread_is_what_was_seen_and_not_read() -> None:
    known = KnownOffsets()
    known.note_read({A0: 10, A1: 5, B0: 1})
    known.note_ends({A0: 30, A1: 5, B0: 9, ("a", 2): 4})
    known.note_read({A0: 12})
    # Of partition 2 no batch said where it was: nothing is known.
    assert known.unread({"a"}) == {A0: 18}
    # What is seen of the new topic before the change is noticed takes nothing back.
    known.note_ends({A0: 2})
    known.note_read({A0: 2})
    assert known.unread({"a", "b"}) == {A0: 18, B0: 8}
    known.forget({"a"})
    assert known.unread({"a", "b"}) == {B0: 8}


def test_truncated_partition_ends_before_what_was_seen_or_read() -> None:
    known = KnownOffsets()
    known.note_read({A0: 10, A1: 5})
    known.note_ends({A1: 8})
    assert known.truncated({A0: 10, A1: 8, B0: 0}) == {}
    ends = {A0: 4, A1: 6}
    assert known.truncated(ends) == {A0: 6, A1: 2}
    known.set_ends(ends)
    assert known.truncated(ends) == {}
    # From here on the partition grows again.
    known.note_ends({A0: 7})
    assert known.unread({"a"}) == {A0: 3, A1: 1}
