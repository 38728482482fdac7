"""Format of the alarms of event queries; read without numpy and numba."""

from __future__ import annotations

KIND = "event_query"
CE_TYPE = "coincide.event_query.v1"
# Format version of an alarm.
ALARM_VERSION = 1
