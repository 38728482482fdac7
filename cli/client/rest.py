"""Client of the REST API."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Self

import httpx

from cli.client.exact_json import write_json
from cli.client.problems import describe_problems
from cli.errors import RefusedError, ServiceError, UsageError
from cli.settings import shown_url

if TYPE_CHECKING:
    from types import TracebackType

    from cli.settings import Settings

_TIMEOUT_SECONDS = 30
_READY_SECONDS = 5
_NOT_FOUND = 404
_FIRST_ERROR = 400
_REMEDIES = {401: "; set COINCIDE_API_KEY to a key that is valid"}
# Max page size of a list.
_MAX_NAMES = 1000
_ANY = "*/*"
Document = dict[str, Any]


class ServiceClient:
    """Requests to one service.

    Parameters
    ----------
    url
        URL of the service, for instance ``http://127.0.0.1:8080``.
    timeout_seconds
        Timeout of one request.
    settings
        API key, and certificates to trust; None: neither.

    Raises
    ------
    UsageError
        The URL, the API key or the file of certificates is not valid.
    """

    def __init__(
        self,
        url: str,
        timeout_seconds: float = _TIMEOUT_SECONDS,
        settings: Settings | None = None,
    ) -> None:
        # Shown in messages: without a user name and password.
        self.url = shown_url(url.rstrip("/"))
        headers = {} if settings is None else _credentials(settings)
        verify = True if settings is None else _trusted(settings)
        try:
            self._client = httpx.Client(
                base_url=url.rstrip("/"), timeout=timeout_seconds, headers=headers, verify=verify
            )
        except httpx.InvalidURL as error:
            raise UsageError(
                f"{self.url} is not a valid URL ({error}); correct --url or COINCIDE_URL"
            ) from error

    @classmethod
    def of(cls, settings: Settings, timeout_seconds: float = _TIMEOUT_SECONDS) -> Self:
        """Return a client of the service of the settings; errors as in the constructor.

        Parameters
        ----------
        settings
            Its settings.
        timeout_seconds
            Timeout of one request, unless the settings have one.
        """
        return cls(settings.url, settings.client_timeout_seconds or timeout_seconds, settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def ready(self) -> bool:
        """Return whether the service answers that it is ready."""
        try:
            return self._client.get("/readyz", timeout=_READY_SECONDS).is_success
        except httpx.HTTPError:
            return False

    def get(self, path: str) -> Document:
        """Return the JSON object at a path.

        Raises
        ------
        ServiceError
            The service does not answer, or answers with an error.
        """
        return self._object_in(self._ask("GET", path))

    def find(self, path: str) -> Document | None:
        """Return the JSON object at a path, or None if it is not found; errors as in ``get``."""
        answer = self._ask("GET", path)
        if answer.status_code == _NOT_FOUND:
            return None
        return self._object_in(answer)

    def names(self, kind: str) -> list[str]:
        """Return the first thousand names of resources; errors as in ``get``."""
        items = self.get(f"/v1/{kind}s?limit={_MAX_NAMES}")["items"]
        return [str(item["name"]) for item in items]

    def text(self, path: str, accept: str = _ANY) -> str:
        """Return the text of a media type at a path; errors as in ``get``."""
        answer = self._ask("GET", path, headers={"Accept": accept})
        self._check(answer)
        media_type = answer.headers.get("content-type", "").partition(";")[0].strip()
        if not answer.is_success or accept not in {_ANY, media_type}:
            raise self._foreign(answer)
        return answer.text

    def post(self, path: str, document: Document) -> Document:
        """Send a JSON object and return the JSON object of the response; errors as in ``get``."""
        return self._object_in(self._ask("POST", path, **_as_body(document)))

    def put(self, path: str, document: Document) -> Document:
        """Create or replace a resource; return the JSON object of the response.

        Parameters
        ----------
        path
            Path of the resource, for instance ``/v1/streams/acoustic``.
        document
            The whole document.

        Raises
        ------
        ServiceError
            The service does not answer, or rejects the document; the message states the reason.
        """
        return self._object_in(self._ask("PUT", path, **_as_body(document)))

    def put_configuration(
        self, resources: list[Document], *, prune: bool, dry_run: bool
    ) -> Document:
        """Register resources, all or none; return the changes.

        Parameters
        ----------
        resources
            Documents with kind and name.
        prune
            Delete all other resources.
        dry_run
            Check everything, write nothing.

        Raises
        ------
        ServiceError
            The service does not answer, or rejects the resources.
        """
        options = {"prune": prune, "dry_run": dry_run}
        params = {name: "true" for name, wanted in options.items() if wanted}
        body = _as_body({"resources": resources})
        return self._object_in(self._ask("PUT", "/v1/config", params=params, **body))

    def _ask(self, method: str, path: str, **arguments: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own arguments
        """Send a request and return the response, whatever its status."""
        try:
            return self._client.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise ServiceError(
                f"no service answers at {self.url} ({error or type(error).__name__}); start it "
                "with `coincide serve`, or set its address with --url or COINCIDE_URL"
            ) from error

    def _object_in(self, answer: httpx.Response) -> Document:
        """Return the JSON object in a response; raise ServiceError if it is an error or no JSON."""
        self._check(answer)
        found = _read_object(answer)
        if found is None or not answer.is_success:
            raise self._foreign(answer)
        return found

    def _foreign(self, answer: httpx.Response) -> ServiceError:
        kind = answer.headers.get("content-type", "no content type")
        return ServiceError(
            f"{answer.request.method} {answer.request.url.path}: {self.url} answered "
            f"{answer.status_code} ({kind[:80]}), which is not an answer of Coincide; check the "
            "proxy in front of the service, or set the address with --url or COINCIDE_URL"
        )

    def _check(self, answer: httpx.Response) -> None:
        """Raise RefusedError if the response is an error."""
        if answer.status_code < _FIRST_ERROR:
            return
        request = f"{answer.request.method} {answer.request.url.path}"
        status = answer.status_code
        problem = _read_object(answer)
        found = [] if problem is None else _problems_in(problem)
        described = answer.text[:200] if problem is None else _describe_problem(problem, found)
        described += _REMEDIES.get(status, "")
        raise RefusedError(f"{request}: {status} {described}", status, found)


def _credentials(settings: Settings) -> dict[str, str]:
    """Return the header with the API key, if there is one; errors do not repeat the key."""
    if settings.api_key is None:
        return {}
    key = settings.api_key.get_secret_value().strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            "COINCIDE_API_KEY: is empty, or has characters that no key has; copy the key again"
        )
    return {"Authorization": f"Bearer {key}"}


def _trusted(settings: Settings) -> ssl.SSLContext | bool:
    """Return the certificates to trust; True: those of the system."""
    if settings.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except OSError as error:
        raise UsageError(
            f"COINCIDE_CA_FILE: {settings.ca_file} cannot be used ({error.strerror or error}); "
            "use a file of certificates in PEM"
        ) from error


def _as_body(document: Document) -> dict[str, Any]:
    """Return a document as arguments of httpx, with every digit of its numbers."""
    return {"content": write_json(document), "headers": {"Content-Type": "application/json"}}


def _read_object(answer: httpx.Response) -> Document | None:
    """Return the JSON object in a response; None: it contains another body."""
    try:
        found = answer.json()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _problems_in(problem: Document) -> list[Document]:
    return [it for it in problem.get("errors") or () if isinstance(it, dict)]


def _describe_problem(problem: Document, found: list[Document]) -> str:
    """Return a problem body as one sentence."""
    return describe_problems(found) or str(problem.get("detail") or problem.get("title") or "")
