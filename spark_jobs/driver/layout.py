"""The layout of the job's state over slots, stored in the checkpoint."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from spark_jobs.driver.session import max_tasks
from spark_jobs.errors import CheckpointMismatchError, LostLayoutError
from spark_jobs.worker.slots import slot_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from spark_jobs.driver.checkpoint import Checkpoint

_VERSION = 4
# Versions whose query this software cannot continue: its state is rebuilt from Kafka.
_OUTDATED_VERSIONS = (3,)
_LAYOUT = "layout.json"


@dataclass(frozen=True, slots=True)
class Layout:
    """Distribution of the state over slots, fixed for a query.

    Parameters
    ----------
    shuffle_partitions : int
        Number of partitions of Spark's stateful operator.
    slot_keys : tuple of int
        One key per slot; see `spark_jobs.worker.slots`.
    id : str
        Unique id of the checkpoint.
    generation : int
        Number of changes of the number of slots, over all checkpoints of the installation.
    """

    shuffle_partitions: int
    slot_keys: tuple[int, ...]
    id: str
    generation: int = 0

    @property
    def query(self) -> str:
        """Folder of the query in the checkpoint.

        State stores of a former query may write to its folder while the query with another number
        of slots runs: the folders differ.
        """
        return f"query-{self.generation}" if self.generation else "query"

    def to_document(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "v": _VERSION,
            "shuffle_partitions": self.shuffle_partitions,
            "slot_keys": self.slot_keys,
            "id": self.id,
            "generation": self.generation,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Layout:
        """Read the stored form.

        Raises
        ------
        CheckpointMismatchError
            When it has an unknown version.
        """
        if document["v"] not in (*_OUTDATED_VERSIONS, _VERSION):
            raise CheckpointMismatchError(
                f"the checkpoint has version {document['v']}, this software reads {_VERSION}: use "
                "the software that wrote it, or begin with an empty checkpoint"
            )
        return cls(
            document["shuffle_partitions"],
            tuple(document["slot_keys"]),
            document["id"],
            document.get("generation", 0),
        )


def open_layout(checkpoint: Checkpoint, session: SparkSession, slots: int) -> Layout:
    """Read the layout of the checkpoint, or create it for a new checkpoint.

    A query without a layout is removed: a job whose checkpoint was removed has written it.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint of the job.
    session : SparkSession
        Session; `max_tasks` limits the shuffle partitions.
    slots : int
        Number of slots of a new checkpoint.

    Raises
    ------
    CheckpointMismatchError
        When the checkpoint has an unknown version.
    """
    stored = checkpoint.read(_LAYOUT)
    if stored is not None:
        layout = Layout.from_document(orjson.loads(stored))
        checkpoint.query = layout.query
        return layout
    checkpoint.remove_query(checkpoint.query)
    layout = make_layout(session, slots, new_id(), 0)
    write_layout(checkpoint, layout)
    return layout


def is_outdated(checkpoint: Checkpoint) -> bool:
    """Return whether an earlier version of this software wrote the layout of the checkpoint."""
    stored = checkpoint.read(_LAYOUT)
    return stored is not None and orjson.loads(stored)["v"] in _OUTDATED_VERSIONS


def new_id() -> str:
    """Return the id of a new checkpoint."""
    return uuid.uuid4().hex


def make_layout(session: SparkSession, slots: int, identity: str, generation: int) -> Layout:
    """Return a layout with a number of slots.

    Parameters
    ----------
    session : SparkSession
        Session; `max_tasks` limits the shuffle partitions.
    slots : int
        Number of slots.
    identity : str
        Id of the checkpoint.
    generation : int
        See `Layout`.
    """
    partitions = max_tasks(session, slots)
    return Layout(partitions, slot_keys(session, slots, partitions), identity, generation)


def replace_layout(checkpoint: Checkpoint, layout: Layout) -> None:
    """Replace query and layout of the checkpoint; a query with this layout begins with batch 0."""
    checkpoint.remove_query(checkpoint.query)
    checkpoint.remove_query(layout.query)
    write_layout(checkpoint, layout)


def write_layout(checkpoint: Checkpoint, layout: Layout) -> None:
    """Store the layout of the checkpoint, which names the folder of the query."""
    checkpoint.write(_LAYOUT, orjson.dumps(layout.to_document()))
    checkpoint.query = layout.query


def check_layout(checkpoint: Checkpoint, layout: Layout) -> None:
    """Check that the checkpoint is still at its location.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint of the job.
    layout : Layout
        Layout that was read at the start.

    Raises
    ------
    LostLayoutError
        When the stored layout is missing or differs. The folder of an unmounted store looks empty,
        and a query would read all topics again.
    """
    stored = checkpoint.read(_LAYOUT)
    if stored is None or orjson.loads(stored)["id"] != layout.id:
        raise LostLayoutError(
            checkpoint.location, f"{_LAYOUT} of this checkpoint is missing (is its volume mounted?)"
        )
