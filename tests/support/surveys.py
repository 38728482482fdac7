"""Surveys of topics without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.settings import Settings
from service.topic_rules import TopicSurvey

if TYPE_CHECKING:
    from collections.abc import Iterable


def survey_existing(uses: Iterable[tuple[str, str | None]]) -> TopicSurvey:
    """Return a survey in which all topics exist; as `TopicRules.survey`."""
    names = frozenset(topic for _, topic in uses if topic is not None)
    return TopicSurvey(Settings(), names, frozenset(), frozenset())
