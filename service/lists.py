"""Present lists of conditions: the newest record of each key of the compacted channels.

The values are kept as they are written, and are parsed when they are asked for.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from correlation.kinds import KINDS
from correlation.result_format import LIST_VERSION, ListName, as_text
from service.log import TopicLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.log import LogRecord
    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
# Errors of a list that is not readable as such.
UNREADABLE, UNKNOWN_VERSION = "unreadable", "unknown_version"
_NUMBERS = ("version", "as_of", "detected_at")


class KeyPage(NamedTuple):
    """Join keys that have a list, in order, and the `after` of the next page."""

    keys: list[str]
    next: str | None


class ListsView:
    """Fold of a compacted channel; `apply` is called by one thread, any thread may read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[str | None, bytes]] = {}

    def apply(self, record: LogRecord) -> None:
        """Apply one record; a record whose key is not that of a list is logged and skipped."""
        try:
            name = ListName.from_record_key(record.key or b"")
        except ValueError:
            _LOGGER.warning("record at offset %s has a key that is not of a list", record.offset)
            return
        key = None if name.key is None else as_text(name.key)
        with self._lock:
            if record.value is not None:
                self._values.setdefault(name.condition, {})[key] = record.value
                return
            found = self._values.get(name.condition, {})
            found.pop(key, None)
            if not found:
                self._values.pop(name.condition, None)

    def find(self, condition: str, key: str | None) -> dict[str, Any] | None:
        """Return a list as the job wrote it; None while it is withdrawn or not written.

        A list that cannot be read has only the field `error`.
        """
        with self._lock:
            value = self._values.get(condition, {}).get(key)
        return None if value is None else _read(value)

    def keys(self, condition: str, limit: int, after: str) -> KeyPage:
        """Return the join keys of a condition that have a list, in order, after a given key."""
        with self._lock:
            known = [key for key in self._values.get(condition, {}) if key is not None]
        found = sorted(key for key in known if key > after)
        return KeyPage(found[:limit], found[limit - 1] if len(found) > limit else None)


class PresentLists:
    """The lists of all conditions, by the channel of their kind.

    Parameters
    ----------
    settings : Settings
        Broker address, timeouts and topics.
    on_failure : callable
        Called when an error stops the reading of a channel.
    """

    def __init__(self, settings: Settings, on_failure: Callable[[Exception], None]) -> None:
        channels = {kind.lists.channel for kind in KINDS.values() if kind.lists is not None}
        topics = settings.topics
        self._views = {it.name: ListsView() for it in channels}
        self._logs = [
            TopicLog(settings, topics.of(it), self._views[it.name].apply, on_failure)
            for it in channels
        ]

    @property
    def failure(self) -> Exception | None:
        """Error that stopped the reading of a channel, or None."""
        return next((it.failure for it in self._logs if it.failure is not None), None)

    def start(self) -> None:
        """Read the lists; errors as of `TopicLog.start`."""
        for log in self._logs:
            log.start()

    def stop(self) -> None:
        """Close the Kafka clients."""
        for log in self._logs:
            log.stop()

    def of_kind(self, kind: str) -> ListsView | None:
        """Return the lists of a kind of conditions; None if its conditions have no lists."""
        lists = KINDS[kind].lists
        return None if lists is None else self._views[lists.channel.name]


def _read(value: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return {"error": UNREADABLE}
    if not isinstance(found, dict):
        return {"error": UNREADABLE}
    if found.get("v") != LIST_VERSION:
        return {"error": UNKNOWN_VERSION}
    return found if _is_list(found) else {"error": UNREADABLE}


def _is_list(record: Mapping[str, Any]) -> bool:
    """Return whether the fields that lists of all kinds have are of their types."""
    items = record.get("items", [])
    return (
        isinstance(items, list)
        and all(isinstance(it, dict) for it in items)
        and all(isinstance(record.get(it), int | None) for it in _NUMBERS)
        and isinstance(record.get("error"), str | None)
    )
