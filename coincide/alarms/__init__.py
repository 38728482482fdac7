"""Reader of Coincide's alarms and lists, for any Kafka client (docs/consumers.md).

>>> from coincide.alarms import AlarmReader
>>> reader = AlarmReader()
>>> headers = [("ce_type", b"coincide.list.v1")]
>>> list(reader.read(b"alike/host-1", None, headers))
[WithdrawnList(condition='alike', key='host-1')]
"""

from coincide.alarms.reader import AlarmReader
from coincide.alarms.values import (
    Event,
    EventQueryAlarm,
    LastingEvent,
    ListChange,
    ListItem,
    PresentList,
    Result,
    SimilarPair,
    TimingAlarm,
    TokenSet,
    WithdrawnList,
)
from correlation.errors import (
    CorrelationError,
    InvalidRecordError,
    UnknownRecordVersionError,
)
from correlation.timing.factored.expanding import MissingTableError

__all__ = [
    "AlarmReader",
    "CorrelationError",
    "Event",
    "EventQueryAlarm",
    "InvalidRecordError",
    "LastingEvent",
    "ListChange",
    "ListItem",
    "MissingTableError",
    "PresentList",
    "Result",
    "SimilarPair",
    "TimingAlarm",
    "TokenSet",
    "UnknownRecordVersionError",
    "WithdrawnList",
]
