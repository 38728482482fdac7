"""Reading of the documents in requests, and all problems that can be found in them at once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from correlation.errors import InvalidFieldError
from correlation.resources.checks import check_name
from correlation.resources.records import ResourceKind
from service.api.wording import field_problems
from service.configuration import Wanted, find_problems
from service.documents.fields import Document, name_as_written
from service.documents.models import ConditionDocument, StreamDocument, TemplateDocument
from service.errors import (
    DependedUponError,
    FieldProblem,
    InvalidConfigurationError,
    InvalidDocumentError,
    first_problems,
)
from service.registry import Registry

_MODELS: Mapping[str, TypeAdapter[Document]] = {
    "stream": TypeAdapter(StreamDocument),
    "template": TypeAdapter(TemplateDocument),
    "condition": TypeAdapter(ConditionDocument),
}
# Name of a document whose own name is not valid, so that its fields can be checked.
_UNNAMED = "unnamed"


def problem_of_field(error: InvalidFieldError | FieldProblem, document: object) -> FieldProblem:
    """Return the problem with the field named as in the document.

    Parameters
    ----------
    error : InvalidFieldError or FieldProblem
        Problem of the normalised document.
    document : object
        The document as the user sent it.
    """
    written = document if isinstance(document, Mapping) else {}
    problem = FieldProblem.of(error) if isinstance(error, InvalidFieldError) else error
    return replace(problem, field=name_as_written(error.field, written))


def document_problems(
    registry: Registry, kind: ResourceKind, document: object, problems: tuple[FieldProblem, ...]
) -> tuple[FieldProblem, ...]:
    """Add further problems of a document to those that its model finds.

    Parameters
    ----------
    registry : Registry
        Registered resources that the document may refer to.
    kind : {"stream", "condition", "template"}
        Kind of the document.
    document : object
        The document as the user sent it.
    problems : tuple of FieldProblem
        All problems that the model finds.
    """
    more = registry.further_problems(kind, document, problems)
    return first_problems((*problems, *(problem_of_field(it, document) for it in more)))


def valid_document_problems(
    registry: Registry, kind: ResourceKind, name: str, document: object
) -> tuple[FieldProblem, ...]:
    """Find the problems of a document that its model accepts, in a request that has others.

    Parameters
    ----------
    registry : Registry
        Registered resources that the document may refer to.
    kind : {"stream", "condition", "template"}
        Kind of the document.
    name : str
        Name of the resource, which may be not valid.
    document : object
        The document as the user sent it.
    """
    try:
        name = check_name(name)
    except InvalidFieldError:
        name = _UNNAMED
    try:
        normalised = _MODELS[kind].validate_python(document).normalised()
        registry.check_document(kind, name, 1, normalised)
    except (InvalidFieldError, InvalidDocumentError) as error:
        return tuple(problem_of_field(it, document) for it in error.problems)
    except DependedUponError:
        # A problem of the present state, which the write itself reports.
        return ()
    return ()


def condition_problems(registry: Registry, document: object) -> tuple[FieldProblem, ...]:
    """Find the problems of a condition without a name, in a request that has others.

    Parameters
    ----------
    registry : Registry
        Registered resources that the document may refer to.
    document : object
        The document as the user sent it.
    """
    try:
        _MODELS["condition"].validate_python(document)
    except ValidationError as error:
        problems = field_problems(error.errors(), (), "condition")
        return document_problems(registry, "condition", document, problems)
    return valid_document_problems(registry, "condition", _UNNAMED, document)


def configuration_problems(
    registry: Registry, body: object, now_us: int, *, prune: bool
) -> tuple[FieldProblem, ...]:
    """Find the problems of a configuration in a request that has others.

    Parameters
    ----------
    registry : Registry
        The resources in force.
    body : object
        The body as the user sent it.
    now_us : int
        Time of the request, in µs since 1970.
    prune : bool
        Whether the request deletes all resources that it does not contain.
    """
    items = body.get("resources") if isinstance(body, Mapping) else None
    if not isinstance(items, list):
        return ()
    try:
        return find_problems(registry, read_resources(items), now_us, prune=prune)
    except InvalidConfigurationError as error:
        return error.problems


def read_resources(items: Sequence[object]) -> list[Wanted]:
    """Read the documents of a configuration.

    Raises
    ------
    InvalidConfigurationError
        When an item does not name its resource, or two items name the same one.
    """
    wanted, problems = [], []
    for place, item in enumerate(items):
        problem = _naming_problem(item)
        if problem is None and isinstance(item, Mapping):
            wanted.append(_read_resource(item))
        elif problem is not None:
            problems.append((f"resources[{place}]", problem))
    for key, times in Counter(it.key for it in wanted).items():
        if times > 1:
            repeated = InvalidFieldError("name", f"occurs {times} times", "keep one of them")
            problems.append(("/".join(key), repeated))
    if problems:
        found = tuple(
            FieldProblem(it.field, it.problem, it.remedy, resource=name) for name, it in problems
        )
        raise InvalidConfigurationError(
            f"{found[0].resource}: {found[0].field}: {found[0].problem}", first_problems(found)
        )
    return wanted


def _naming_problem(item: object) -> InvalidFieldError | None:
    """Return the problem of kind and name of an item, or None."""
    if not isinstance(item, Mapping):
        return InvalidFieldError("", "must be an object", "write a JSON object: {…}")
    for field in ("kind", "name"):
        if field not in item:
            return InvalidFieldError(field, "is missing", "add it")
        if not isinstance(item[field], str):
            return InvalidFieldError(field, "must be a string", "write a string, in double quotes")
    try:
        check_name(item["name"])
    except InvalidFieldError as error:
        return InvalidFieldError("name", error.problem, error.remedy)
    return None


def _read_resource(item: Mapping[str, Any]) -> Wanted:
    document = {name: value for name, value in item.items() if name != "name"}
    kind: ResourceKind = "condition"
    problems: list[FieldProblem] = []
    paused = None
    if document["kind"] in {"stream", "template"}:
        kind = document.pop("kind")
    else:
        paused = document.pop("paused", None)
        if not isinstance(paused, bool | None):
            remedy = "write true or false, without quotes"
            problems.append(FieldProblem("paused", "must be true or false", remedy))
            paused = None
    normalised = document
    try:
        normalised = _MODELS[kind].validate_python(document).normalised()
    except ValidationError as error:
        problems += field_problems(error.errors(), (), kind if kind != "condition" else "")
    except InvalidFieldError as error:
        problems += [FieldProblem.of(it) for it in error.problems]
    return Wanted(kind, item["name"], normalised, paused, document, tuple(problems))
