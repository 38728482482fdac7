"""Streams and conditions of a replay: files as for ``apply``, checked as by the service."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from cli.client.exact_json import write_json
from cli.client.near_names import did_you_mean
from cli.client.problems import describe_problems
from cli.client.resources import read_resources
from cli.errors import UsageError
from correlation.engine.program import Control
from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS, to_condition
from correlation.resources.records import Resource
from service.api.body import parse_json
from service.api.documents import problem_of_field
from service.api.wording import field_problems
from service.checks import checked_condition, checked_stream
from service.documents.models import ConditionDocument, StreamDocument, TemplateDocument
from service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from cli.client.resources import ResourceFile
    from cli.replay.options import EventFile, ReplayOptions
    from correlation.resources.streams import Stream
    from service.documents.fields import Document
    from service.errors import FieldProblem

_STREAMS: TypeAdapter[Document] = TypeAdapter(StreamDocument)
_CONDITIONS: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
_TEMPLATES: TypeAdapter[Document] = TypeAdapter(TemplateDocument)


@dataclass(frozen=True, slots=True)
class Setup:
    """Streams and conditions of a replay; sent unchanged to its processes.

    Parameters
    ----------
    streams
        Streams that have files, or whose topics are read, by name.
    partitions
        Number of files, or of partitions, of each stream.
    conditions
        Conditions in their first version, in the order of the files.
    """

    streams: Mapping[str, Stream]
    partitions: Mapping[str, int]
    conditions: tuple[Resource, ...]

    def controls(self) -> list[Control]:
        """Return the conditions as records of a config topic."""
        return [
            Control(offset, resource.key, resource.to_record())
            for offset, resource in enumerate(self.conditions)
        ]

    def streams_of(self, condition: Resource) -> tuple[str, ...]:
        """Return the names of the streams that a condition reads."""
        return to_condition(condition).streams


def read_setup(options: ReplayOptions) -> Setup:
    """Read and check the templates, streams and conditions that a replay needs.

    Parameters
    ----------
    options
        Options with the files of resources and of events.

    Raises
    ------
    UsageError
        A document is not valid, a name is unknown, or a stream of a condition has no file.
    """
    declared, registered = _read(options.resources, options.conditions)
    streams = _with_files(declared, options.files)
    for name, path in options.keys:
        _refuse_unknown(f"--key names stream {name}", name, streams)
        streams[name] = _keyed_by(streams[name], path)
    for resource in registered:
        for name in to_condition(resource).streams:
            if name not in streams:
                raise UsageError(
                    f"condition {resource.name} reads stream {name}, but its events are missing; "
                    f"give --events {name}=FILE, or choose other conditions with --condition"
                )
    partitions = {name: sum(it.stream == name for it in options.files) for name in streams}
    return Setup(
        {name: _recorded(stream, sort=options.sort) for name, stream in streams.items()},
        partitions,
        registered,
    )


def read_topic_setup(
    resources: Iterable[Path], conditions: Iterable[str], count_partitions: Callable[[Stream], int]
) -> Setup:
    """Read and check the conditions of a replay of topics, and the streams that they need.

    Parameters
    ----------
    resources
        Files of streams and conditions.
    conditions
        Names of the conditions to evaluate; empty: all.
    count_partitions
        Returns the number of partitions of a stream's topic; raises if the topic is missing.

    Raises
    ------
    UsageError
        A document is not valid, or a name is unknown.
    """
    declared, registered = _read(resources, conditions)
    needed = {name for resource in registered for name in to_condition(resource).streams}
    streams = {name: declared[name] for name in declared if name in needed}
    return Setup(
        {name: _recorded(stream, sort=False) for name, stream in streams.items()},
        {name: count_partitions(stream) for name, stream in streams.items()},
        registered,
    )


def _read(
    files: Iterable[Path], names: Iterable[str]
) -> tuple[dict[str, Stream], tuple[Resource, ...]]:
    """Read all streams, and the conditions with these names; without names, all conditions."""
    found = read_resources(list(files))
    templates = {it.name: _read_template(it) for it in found if it.kind == "template"}
    declared = {it.name: _read_stream(it, templates) for it in found if it.kind == "stream"}
    conditions = _chosen([it for it in found if it.kind == "condition"], tuple(names))
    return declared, tuple(_read_condition(it, declared) for it in conditions)


def _refuse_unknown(reference: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        near = did_you_mean(name, sorted(known))
        raise UsageError(f"{reference}, which is not in the files; use one of: {names}{near}")


def _with_files(declared: dict[str, Stream], files: Iterable[EventFile]) -> dict[str, Stream]:
    """Return the streams that have files."""
    for file in files:
        _refuse_unknown(f"--events names stream {file.stream}", file.stream, declared)
    return {file.stream: declared[file.stream] for file in files}


def _chosen(found: list[ResourceFile], names: Iterable[str]) -> list[ResourceFile]:
    """Return the conditions with these names; without names, all conditions."""
    if not found:
        raise UsageError("--file: a condition is missing; add one to the files")
    for name in names:
        _refuse_unknown(f"--condition names {name}", name, [it.name for it in found])
    return [it for it in found if not names or it.name in names]


def _read_template(resource: ResourceFile) -> Resource:
    found = Resource("template", resource.name, 1, 0, _normalised(resource, _TEMPLATES))
    try:
        found.to_template()
    except InvalidFieldError as error:
        raise _refusal(resource, _problems(error, resource)) from error
    return found


def _read_stream(resource: ResourceFile, templates: Mapping[str, Resource]) -> Stream:
    document = _normalised(resource, _STREAMS)
    for kind, name in sorted(resource.needs):
        _refuse_unknown(f"stream {resource.name} names {kind} {name}", name, templates)
    try:
        return checked_stream(resource.name, document, templates)
    except InvalidFieldError as error:
        raise _refusal(resource, _problems(error, resource)) from error


def _read_condition(resource: ResourceFile, streams: Mapping[str, Stream]) -> Resource:
    document = _normalised(resource, _CONDITIONS)
    for name in sorted(resource.streams):
        _refuse_unknown(f"condition {resource.name} reads stream {name}", name, streams)
    try:
        checked_condition(resource.name, 1, document, streams)
    except InvalidFieldError as error:
        raise _refusal(resource, _problems(error, resource)) from error
    except ServiceError as error:
        raise _refusal(resource, error.problems, error.detail) from error
    evaluated = KINDS[document["kind"]].replay_document(document)
    return Resource("condition", resource.name, 1, 0, dict(evaluated))


def _normalised(resource: ResourceFile, model: TypeAdapter[Document]) -> dict[str, Any]:
    """Parse a document from JSON, as the service does, so that numbers stay exact."""
    try:
        body = write_json(resource.document).encode()
        return model.validate_python(parse_json(body)).normalised()
    except ValidationError as error:
        kind = "template" if resource.kind == "template" else ""
        raise _refusal(resource, field_problems(error.errors(), document=kind)) from error
    except InvalidFieldError as error:
        raise _refusal(resource, _problems(error, resource)) from error
    except ServiceError as error:
        raise _refusal(resource, error.problems, error.detail) from error
    except TypeError as error:
        # For instance a date in YAML.
        raise UsageError(f"{resource.place}, {resource.kind} {resource.name}: {error}") from error


def _problems(error: InvalidFieldError, resource: ResourceFile) -> list[FieldProblem]:
    return [problem_of_field(it, resource.document) for it in error.problems]


def _refusal(
    resource: ResourceFile, problems: Iterable[FieldProblem], detail: str = ""
) -> UsageError:
    text = describe_problems([asdict(it) for it in problems])
    return UsageError(f"{resource.place}, {resource.kind} {resource.name}: {text or detail}")


def _keyed_by(stream: Stream, path: str) -> Stream:
    """Return the stream with its join key in a field, not in the Kafka record key."""
    if stream.mapping.key_path is not None:
        raise UsageError(
            f"--key {stream.name}={path}: the mapping of the stream already has a key; remove --key"
        )
    try:
        return replace(stream, mapping=replace(stream.mapping, key_path=tuple(path.split("."))))
    except InvalidFieldError as error:
        raise UsageError(f"--key {stream.name}={path}: {error}") from error


def _recorded(stream: Stream, *, sort: bool) -> Stream:
    """Return the stream with the replay clock: arrival times have no effect on its events.

    If the files are sorted by latest time, no event is late and max_delay is 0.
    """
    return replace(stream, clock="replay", max_delay_us=0 if sort else stream.max_delay_us)
