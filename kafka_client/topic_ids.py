"""Topic ids of Kafka: a topic that is deleted and created again has a new id."""

from __future__ import annotations

# Id reported by brokers without topic ids.
_ZERO_ID = "A" * 22
_URL_ALPHABET = str.maketrans("+/", "-_")


def read_topic_id(described: object) -> str | None:
    """Return a topic's id in the format of Kafka's own tools: URL-safe base64.

    Parameters
    ----------
    described
        The `topic_id` of the client's description of a topic.

    Returns
    -------
    str or None
        The id; None if the broker does not support topic ids.
    """
    found = str(described).translate(_URL_ALPHABET)
    return None if found == _ZERO_ID else found
