"""Ids that Kafka gives topics: a topic that is deleted and created again has another one."""

from __future__ import annotations

# The answer of brokers that give topics no ids.
_ZERO_ID = "A" * 22
_URL_ALPHABET = str.maketrans("+/", "-_")


def read_topic_id(described: object) -> str | None:
    """Return a topic's id as Kafka's own tools write it: base64 in the alphabet of URLs.

    Parameters
    ----------
    described
        The `topic_id` of the client's description of a topic.

    Returns
    -------
    str or None
        None where the broker gives topics no ids.
    """
    found = str(described).translate(_URL_ALPHABET)
    return None if found == _ZERO_ID else found
