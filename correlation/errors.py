"""The errors of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from correlation.reasons import Reason


class CorrelationError(Exception):
    """Base of all errors of this package."""


class InvalidFieldError(CorrelationError, ValueError):
    """A value that a user gave is wrong; raised by the constructors of value types.

    Parameters
    ----------
    field : str
        Name of the field as the user wrote it.
    problem : str
        What is wrong with it.
    remedy : str
        What to write instead.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy


class UnknownRecordVersionError(CorrelationError):
    """A stored record was written by a newer version of this software (or is not ours)."""


class UnreadableRecordError(CorrelationError):
    """A record of the config topic does not hold a resource under its own key."""


class RejectedEventError(CorrelationError):
    """A record cannot become an event of its stream; it belongs in the dead letter.

    Parameters
    ----------
    reason : Reason
        One of a closed list.
    detail : str
        What was found, for a person to read.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
