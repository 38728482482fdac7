"""The route that compares the declared limits of a stream with its observed values."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from correlation.engine.advice import advise
from correlation.engine.contract import ContractFacts, Spread, declaration, length_limits
from correlation.resources.attributes import attributes_to_document
from correlation.resources.tokens import tokens_to_document
from service.api.body import JsonRoute
from service.api.common import Name, Plane, StreamStatus, WrongTopic, describe_stream
from service.api.problems import responses

router = APIRouter(prefix="/v1/streams", tags=["streams"], route_class=JsonRoute)
_SHARES = (0.5, 0.9, 0.99, 0.999)


class QuantileStatus(BaseModel):
    """A quantile of the durations."""

    share: float = Field(description="Share of the events.")
    estimate_us: int = Field(description="Estimated from a histogram, in µs.")
    at_most_us: int = Field(description="Upper bound, in µs.")


class SpreadStatus(BaseModel):
    """Distribution of observed durations."""

    min_us: int = Field(description="Min, in µs.")
    max_us: int = Field(description="Max, in µs.")
    quantiles: list[QuantileStatus] = Field(description="Estimates.")


class NearLimits(BaseModel):
    """Share of the events within a tenth of a limit."""

    min_uncertainty: float | None = Field(
        description="Share of the events whose length is near `min_uncertainty`; null: they last."
    )
    max_uncertainty: float | None = Field(
        description="Share of the events whose length exceeds 90 % of `max_uncertainty`; null: "
        "they last."
    )
    min_length: float | None = Field(
        description="Share of the events whose length is near `min_length`; null: not declared."
    )
    max_length: float | None = Field(
        description="Share of the events whose length exceeds 90 % of `max_length`; null: not "
        "declared."
    )
    max_delay: float | None = Field(
        description="Share of the events with a delay over 90 % of `max_delay`; live only."
    )


class SeenStatus(BaseModel):
    """Observed values of a stream under its present declaration."""

    events: int = Field(description="Number of accepted events.")
    late: int = Field(description="Number of accepted events that were late.")
    rejected: dict[str, int] = Field(description="Number of rejected records, by reason.")
    lengths: SpreadStatus | None = Field(description="Lengths of the events' intervals.")
    delays: SpreadStatus | None = Field(
        description="Kafka timestamp minus latest time, for live streams. Negative: the record "
        "arrived before the end of its interval."
    )
    near_limits: NearLimits | None = Field(description="Shares of events near the declared limits.")


class StreamReport(StreamStatus):
    """State of a stream in the job, and advice on its declaration."""

    name: str = Field(description="Name of the stream.")
    version: int = Field(description="Registered version.")
    declared: dict[str, Any] = Field(
        description="Declaration of the stream; durations in µs, templates with their versions."
    )
    rejected: dict[str, int] = Field(
        description="Number of rejected records since the stream was first registered, by reason."
    )
    filtered: int = Field(
        description="Number of records that do not match `where`, since the stream was first "
        "registered."
    )
    refused_heartbeats: int = Field(
        description="Number of rejected heartbeats of the live stream since it was first "
        "registered: ahead of Kafka's clock by more than max_skew."
    )
    topic_problems: list[WrongTopic] | None = Field(
        description="Topic settings that do not suit the stream; null: Kafka does not report them."
    )
    seen: SeenStatus = Field(description="Observations since the last change of the declaration.")
    advice: list[str] = Field(description="Advice on wrong or wasteful fields of the declaration.")
    job_up: bool = Field(description="Whether the job runs and has reported recently.")


@router.get("/{name}/status", responses=responses(404, 422))
def get_stream_status(name: Name, plane: Plane) -> StreamReport:
    """Return the state of a stream, and compare its declared limits with observed values."""
    resource, view = plane.find("stream", name).resource, plane.metrics
    stream = resource.to_stream()
    limits = declaration(stream)
    facts, wrong = view.contract(stream), plane.stream_topics.problems([stream])
    return StreamReport(
        name=name,
        version=resource.version,
        declared={
            **{f"{it}_us": limits[f"{it}_us"] for it in length_limits(limits)},
            "max_delay_us": stream.max_delay_us,
            "max_skew_us": stream.max_skew_us,
            "clock": stream.clock,
            "templates": {it.name: it.version for it in stream.templates},
            "histograms": stream.histograms,
            "attributes": attributes_to_document(stream.attributes),
            "where": None if stream.where is None else stream.where.to_document(),
            "tokens": tokens_to_document(stream.tokens),
        },
        **describe_stream(view, name),
        rejected=view.by_label("events_rejected_total", "reason", stream=name),
        filtered=view.by_label("events_filtered_total", "stream", stream=name).get(name, 0),
        refused_heartbeats=view.refused_heartbeats(name),
        topic_problems=None if wrong is None else [WrongTopic(**it._asdict()) for it in wrong],
        seen=_seen(facts),
        advice=list(advise(stream, facts, view.slots())),
        job_up=plane.job_is_up(),
    )


def _seen(facts: ContractFacts | None) -> SeenStatus:
    if facts is None:
        return SeenStatus(
            events=0, late=0, rejected={}, lengths=None, delays=None, near_limits=None
        )
    near = facts.near_ratios()
    return SeenStatus(
        events=facts.events,
        late=facts.late,
        rejected=dict(facts.rejected),
        lengths=_spread(facts.lengths),
        delays=_spread(facts.delays),
        near_limits=_near(near) if near else None,
    )


def _near(ratios: Mapping[str, float]) -> NearLimits:
    return NearLimits(
        min_uncertainty=ratios.get("min_uncertainty"),
        max_uncertainty=ratios.get("max_uncertainty"),
        min_length=ratios.get("min_length"),
        max_length=ratios.get("max_length"),
        max_delay=ratios.get("max_delay"),
    )


def _spread(spread: Spread | None) -> SpreadStatus | None:
    if spread is None:
        return None
    quantiles = [QuantileStatus(**spread.quantile(share)._asdict()) for share in _SHARES]
    return SpreadStatus(min_us=spread.min_us, max_us=spread.max_us, quantiles=quantiles)
