"""The user of a Kafka client, apart from the settings, whose import takes Python workers time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def user_of(properties: Mapping[str, object]) -> str | None:
    """Return the user in the properties of a Kafka client; None if they do not name the user."""
    user = properties.get("sasl.username")
    return None if user is None else str(user)
