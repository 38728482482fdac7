"""Check that the config topic belongs to the checkpoint.

The checkpoint holds the conditions that the config topic registered, and the applied offset. With a
recreated topic, deleted conditions would continue and new conditions would never begin. The job
therefore refuses a recreated topic until an operator accepts its id. Then the job reads the topic
from its beginning, and the slots drop the conditions that the topic does not register again. The
acceptance is stored last; until then a restart repeats every step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson

from correlation.errors import UnknownRecordVersionError
from spark_jobs.errors import ConfigTopicError

if TYPE_CHECKING:
    from spark_jobs.driver.checkpoint import Checkpoint

_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Stored:
    """The config topic that the slots have applied."""

    id: str | None
    epoch: int


class ConfigTopic:
    """Checks that the config topic is the topic of the checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint of the job.
    name : str
        Name of the topic.
    found_id : str or None
        Id of the topic when it was read; None when the broker does not assign ids.
    accepted_id : str or None
        Id of the recreated topic that the operator accepts.

    Raises
    ------
    ConfigTopicError
        When the topic was recreated and its id is not accepted.
    """

    def __init__(
        self, checkpoint: Checkpoint, name: str, found_id: str | None, accepted_id: str | None
    ) -> None:
        self._checkpoint = checkpoint
        self._name = name
        self._read_id = found_id
        self._stored = _read(checkpoint)
        if self._stored.id is None and found_id is not None:
            # The checkpoint is new, or an earlier version without topic ids wrote it.
            self._store(replace(self._stored, id=found_id))
        if self.is_accepting and accepted_id != found_id:
            raise self._refusal(self._stored.id, found_id)

    @property
    def name(self) -> str:
        """Name of the topic."""
        return self._name

    @property
    def id(self) -> str | None:
        """Kafka's id of the topic that the slots have applied."""
        return self._stored.id

    @property
    def epoch(self) -> int:
        """Number of recreated config topics that were accepted."""
        return self._stored.epoch

    @property
    def is_accepting(self) -> bool:
        """Whether the topic differs from the topic that the slots have applied."""
        return self._read_id is not None and self._read_id != self._stored.id

    def check(self, found_id: str | None) -> None:
        """Check that the topic was not recreated since it was read at the start.

        Raises
        ------
        ConfigTopicError
            When the topic was recreated.
        """
        known = self._read_id or self._stored.id
        if known is None and found_id is not None:
            self._store(replace(self._stored, id=found_id))
        elif found_id not in {known, None}:
            raise self._refusal(known, found_id)

    def accept(self) -> None:
        """Store that the topic replaces the earlier topic."""
        self._store(_Stored(self._read_id, self._stored.epoch + 1))

    def _store(self, stored: _Stored) -> None:
        document = {"v": _VERSION, "id": stored.id}
        self._checkpoint.write(_file(stored.epoch), orjson.dumps(document))
        self._stored = stored

    def _refusal(self, former: str | None, now: str | None) -> ConfigTopicError:
        return ConfigTopicError(
            f"{self._name}: was deleted and created again: the checkpoint belongs to the topic "
            f"with id {former}, but the topic now has id {now}. Write the missing streams and "
            "conditions to it (from a backup, or with `coincide apply`), then start the job with "
            f"COINCIDE_ACCEPT_CONFIG_TOPIC={now}; conditions that the topic does not contain are "
            "removed. Or start once with --from-beginning. See docs/operations.md, "
            '"The config topic was lost"'
        )


def note_config_topic(checkpoint: Checkpoint, topic_id: str | None) -> None:
    """Store the id of the config topic that a rebuilt state comes from, if no id is stored."""
    if topic_id is not None and checkpoint.read(_file(0)) is None:
        document = {"v": _VERSION, "id": topic_id}
        checkpoint.write(_file(0), orjson.dumps(document))


def forget_config_topic(checkpoint: Checkpoint) -> None:
    """Remove the stored ids: the next config topic that is found belongs to the checkpoint."""
    # The last epoch first: a kill leaves an earlier topic, which is checked, too.
    for epoch in range(_read(checkpoint).epoch, -1, -1):
        checkpoint.remove(_file(epoch))


def _file(epoch: int) -> str:
    """Return the file name of an epoch; an acceptance adds a file and replaces none."""
    return f"config_topic-{epoch}.json"


def _read(checkpoint: Checkpoint) -> _Stored:
    stored = _Stored(None, 0)
    epoch = 0
    while (content := checkpoint.read(_file(epoch))) is not None:
        document = orjson.loads(content)
        if document["v"] != _VERSION:
            raise UnknownRecordVersionError(
                f"{_file(epoch)} has the unknown version {document['v']}"
            )
        stored = _Stored(document["id"], epoch)
        epoch += 1
    return stored
