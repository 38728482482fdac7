"""The moment of the job's batch, from the files of the checkpoint and the topics of its output.

Spark writes `offsets/N` when batch N begins and `commits/N` when it ends. Between them each slot
stores the version N + 1 of its state, and then writes its output, with its position in the state
topic, in one transaction: while it is open, the topics have records after the last stable offset.
"""

from __future__ import annotations

import json
from concurrent.futures import wait
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.crash.faults import Moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from correlation.resources.topics import Topics

_RESTARTS = "the query restarts"
# A broker that is down is not waited for.
_ASK_SECONDS = 1.0


class Seen(NamedTuple):
    """Known facts of a job at a time.

    Attributes
    ----------
    begun, completed
        Newest batch that was begun, and that was completed; -1: none.
    stored
        Number of slots that have stored the state of the newest batch.
    is_open
        Whether a transaction is open.
    stable
        Sum of the last stable offsets of the output; None: the broker did not answer.
    is_restarting
        Whether the job restarts its query and has not begun a batch since.
    is_rebuilding
        Whether the state is rebuilt, and the first batch is not completed.
    """

    begun: int
    completed: int
    stored: int
    is_open: bool
    stable: int | None
    is_restarting: bool
    is_rebuilding: bool


class Observer:
    """Finds the moment of a job.

    Parameters
    ----------
    bootstrap
        Address of the broker.
    topics
        Topics of the installation.
    checkpoint
        Folder of the checkpoint.
    log
        Log of the job.
    """

    def __init__(self, bootstrap: str, topics: Topics, checkpoint: Path, log: Path) -> None:
        self._checkpoint, self._log = checkpoint, log
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        places = [TopicPartition(topics.state, 0)]
        places += [TopicPartition(topics.alarms, number) for number in range(2)]
        # The client's methods have no types.
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        self._places = dict.fromkeys(places, latest)
        self._log_begin, self._restarts_after = 0, -1
        # Batch, and the sum of the stable offsets before it.
        self._batch, self._stable = -1, 0

    def begin(self) -> None:
        """Ignore restarts of the query until now."""
        self._log_begin = self._log.stat().st_size if self._log.is_file() else 0
        self._restarts_after = -1

    def look(self, *, ask: bool = True) -> Seen:
        """Return what is known of the job.

        Parameters
        ----------
        ask
            Whether to query the broker, which takes some milliseconds.
        """
        begun, completed = self.newest("offsets"), self.newest("commits")
        stable, ends = self._ends() if ask else (None, None)
        # The offsets before a batch are known if the topics were looked at before it began.
        batch = begun if begun > completed else begun + 1
        if stable is not None and (batch != self._batch or batch > begun):
            self._batch, self._stable = batch, stable
        return Seen(
            begun,
            completed,
            self._count_stored(begun + 1),
            stable is not None and ends != stable,
            stable,
            self._is_restarting(begun),
            (self._checkpoint / "rebuild.json").is_file() and completed < 0,
        )

    def moment(self, seen: Seen) -> Moment:
        """Return the moment of the job.

        An open transaction, or one of the batch that has ended, counts before the states: the slots
        of a batch work side by side.
        """
        if seen.is_rebuilding:
            return Moment.REBUILDING
        if seen.begun <= seen.completed:
            return Moment.RESTARTING if seen.is_restarting else Moment.IDLE
        if seen.is_open:
            return Moment.IN_TRANSACTION
        if not seen.stored:
            return Moment.BEFORE_STATE
        if seen.stable is not None and self._batch == seen.begun and seen.stable > self._stable:
            return Moment.AFTER_TRANSACTION
        return Moment.AFTER_STATE

    def newest(self, folder: str) -> int:
        """Return the newest batch in a folder of Spark's checkpoint, or -1."""
        try:
            names = [it.name for it in (self._checkpoint / "query" / folder).iterdir()]
        except FileNotFoundError:
            return -1
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def read_up_to(self, topic: str) -> int:
        """Return the offset up to which the completed batches have read partition 0 of a topic."""
        path = self._checkpoint / "query" / "offsets" / f"{self.newest('commits')}"
        for line in path.read_text().splitlines() if path.is_file() else ():
            with suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and topic in found:
                    return int(found[topic]["0"])
        return 0

    def _count_stored(self, version: int) -> int:
        folder = self._checkpoint / "query" / "state" / "0"
        with suppress(FileNotFoundError):
            slots = [it for it in folder.iterdir() if it.name.isdigit()]
            return sum(
                (slot / f"{version}.changelog").is_file() or (slot / f"{version}.zip").is_file()
                for slot in slots
            )
        return 0

    def _is_restarting(self, begun: int) -> bool:
        """Return whether the log names a restart after which no batch was begun."""
        if self._restarts_after < 0 and self._log.is_file():
            with self._log.open("rb") as log:
                log.seek(self._log_begin)
                if _RESTARTS.encode() in log.read():
                    self._restarts_after = begun
        return 0 <= self._restarts_after == begun

    def _ends(self) -> tuple[int | None, int | None]:
        """Return the sums of the last stable offsets and of the ends of the output."""
        levels: Sequence[IsolationLevel] = (
            IsolationLevel.READ_COMMITTED,
            IsolationLevel.READ_UNCOMMITTED,
        )
        try:
            asked = [
                self._client.list_offsets(
                    self._places, isolation_level=level, request_timeout=_ASK_SECONDS
                )
                for level in levels
            ]
            _, missing = wait([it for one in asked for it in one.values()], _ASK_SECONDS)
            if missing:
                return None, None
            stable, ends = (sum(it.result().offset for it in one.values()) for one in asked)
        except KafkaException:
            return None, None
        return stable, ends
