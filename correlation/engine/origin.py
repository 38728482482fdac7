"""Identity of the topics from which a program gets its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Origin:
    """Identity of the topics of a program: a topic may be recreated under the same name.

    Parameters
    ----------
    topic_ids : mapping of stream to str
        Kafka's id of the stream's topic; a stream that is missing keeps its previous id.
    config_epoch : int
        Number of times that the config topic was replaced by another one.
    missing : frozenset of str
        Registered streams whose topics do not exist.
    """

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    config_epoch: int = 0
    missing: frozenset[str] = frozenset()
