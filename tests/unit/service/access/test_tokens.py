"""Tokens of an issuer: a real local issuer, valid tokens, and forged ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any, get_args

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import ValidationError

from service.access.callers import Caller, Role
from service.access.signing_keys import MIN_INTERVAL_SECONDS, UnknownKeyError
from service.access.tokens import TokenVerifier
from service.errors import IssuerError
from service.settings import Algorithm, Settings
from tests.support.issuer import (
    AUDIENCE,
    DISCOVERY,
    KEYS,
    Issuer,
    new_key_of,
    new_signing_key,
    public_jwk,
    running_issuer,
)
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

# In the year 2100.
LATER = 4_102_444_800


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as found:
        yield found


def verifier(issuer: Issuer, clock: Clock | None = None, **changes: object) -> TokenVerifier:
    values = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, **changes}
    return TokenVerifier(Settings.model_validate(values), clock or Clock())


def test_valid_token_names_its_caller(issuer: Issuer) -> None:
    found = verifier(issuer).verify(issuer.token())
    assert found == Caller("ada", Role.VIEWER, (), "token")
    assert issuer.requests == [DISCOVERY, KEYS]


def test_keys_are_fetched_once_for_many_tokens(issuer: Issuer) -> None:
    tokens = verifier(issuer, oidc_jwks_url=issuer.url + KEYS)
    for _ in range(3):
        assert tokens.verify(issuer.token()) is not None
    assert issuer.requests == [KEYS]


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example.com"},
        {"aud": "another-service"},
        {"aud": None},
        {"iss": None},
        {"sub": None},
        {"exp": None},
        {"exp": 1_700_000_000},
        {"nbf": LATER},
        {"roles": []},
        {"roles": ["owner"]},
        {"roles": None},
        {"roles": {"viewer": True}},
        {"roles": 3},
    ],
)
def test_token_with_wrong_claims_is_refused(issuer: Issuer, changes: dict[str, Any]) -> None:
    assert verifier(issuer).verify(issuer.token(**changes)) is None


def test_token_of_an_unknown_key_is_refused(issuer: Issuer) -> None:
    stranger = new_signing_key()
    for key_id in ("first", "other"):
        forged = jwt.encode(issuer.claims(), stranger, algorithm="RS256", headers={"kid": key_id})
        assert verifier(issuer).verify(forged) is None


def part(document: object) -> str:
    text = json.dumps(document).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


@pytest.mark.parametrize("alg", ["none", "None", "NONE", ""])
def test_token_without_a_signature_is_refused(issuer: Issuer, alg: str) -> None:
    header = part({"alg": alg, "typ": "JWT", "kid": "first"})
    unsigned = f"{header}.{part(issuer.claims(roles=['admin']))}."
    assert verifier(issuer).verify(unsigned) is None


def test_token_signed_with_the_public_key_as_a_secret_is_refused(issuer: Issuer) -> None:
    public = issuer.keys["first"].public_key()
    for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1):
        secret = public.public_bytes(Encoding.PEM, form)
        header = part({"alg": "HS256", "typ": "JWT", "kid": "first"})
        signed = f"{header}.{part(issuer.claims(roles=['admin']))}"
        signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        text = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
        assert verifier(issuer).verify(f"{signed}.{text}") is None


def test_changed_claims_are_refused(issuer: Issuer) -> None:
    header, _, signature = issuer.token().split(".")
    changed = f"{header}.{part(issuer.claims(roles=['admin']))}.{signature}"
    assert verifier(issuer).verify(changed) is None


@pytest.mark.parametrize(
    "text", ["", "a", "a.b", "a.b.c", "....", "é.é.é", "x" * 20_000, "\0.\0.\0"]
)
def test_text_that_is_not_a_token_is_refused(issuer: Issuer, text: str) -> None:
    assert verifier(issuer).verify(text) is None
    assert issuer.requests == []


def test_algorithm_that_is_not_accepted_is_refused(issuer: Issuer) -> None:
    assert verifier(issuer, oidc_algorithms=["ES256"]).verify(issuer.token()) is None


@pytest.mark.parametrize("name", get_args(Algorithm))
def test_token_of_each_algorithm_is_accepted_with_its_key_only(issuer: Issuer, name: str) -> None:
    issuer.keys = {"first": new_signing_key(), "other": new_key_of(name)}
    # RS256 and ES256 are accepted without a setting.
    changes: dict[str, Any] = {} if name in {"RS256", "ES256"} else {"oidc_algorithms": [name]}
    tokens = verifier(issuer, **changes)
    token = issuer.sign(issuer.claims(), "other", name)
    assert tokens.verify(token) == Caller("ada", Role.VIEWER, (), "token")
    header, _, signature = token.split(".")
    assert tokens.verify(f"{header}.{part(issuer.claims(sub='eve'))}.{signature}") is None
    stranger = new_key_of(name)
    forged = jwt.encode(issuer.claims(), stranger, algorithm=name, headers={"kid": "other"})
    assert tokens.verify(forged) is None
    assert verifier(issuer, oidc_algorithms=["RS384"]).verify(token) is None or name == "RS384"


@pytest.mark.parametrize(("kind", "alg"), [("ES256", "RS256"), ("RS256", "ES256")])
def test_token_signed_with_a_key_of_another_type_is_refused(
    issuer: Issuer, kind: str, alg: str
) -> None:
    issuer.keys = {"first": new_key_of(kind)}
    forged = jwt.encode(issuer.claims(), new_key_of(alg), algorithm=alg, headers={"kid": "first"})
    assert verifier(issuer).verify(forged) is None
    assert verifier(issuer).verify(issuer.sign(issuer.claims(), "first", kind)) is not None


@pytest.mark.parametrize("alg", ["HS256", "RS256", "ES256"])
def test_shared_secret_among_the_keys_of_the_issuer_is_not_used(issuer: Issuer, alg: str) -> None:
    secret = b"a secret that the issuer published by mistake"
    shared = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(secret).decode()}
    keys = [shared, public_jwk("first", issuer.keys["first"])]
    issuer.replaced = {KEYS: (200, json.dumps({"keys": keys}).encode())}
    signed = f"{part({'alg': alg, 'typ': 'JWT', 'kid': 'shared'})}.{part(issuer.claims())}"
    signature = base64.urlsafe_b64encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest())
    tokens = verifier(issuer)
    assert tokens.verify(f"{signed}.{signature.rstrip(b'=').decode()}") is None
    assert tokens.verify(issuer.token()) is not None


@pytest.mark.parametrize("name", ["HS256", "none", "RS1"])
def test_algorithms_with_shared_secrets_cannot_be_accepted(name: str) -> None:
    with pytest.raises(ValidationError):
        Settings(oidc_algorithms=[name])  # type: ignore[arg-type]  # the wrong value is the test


def test_new_key_of_the_issuer_is_fetched_but_not_for_every_unknown_key(issuer: Issuer) -> None:
    clock = Clock()
    tokens = verifier(issuer, clock, oidc_jwks_url=issuer.url + KEYS)
    assert tokens.verify(issuer.token()) is not None
    issuer.keys["second"] = new_signing_key()
    # The keys have just been fetched: forged ids must not cause requests.
    for _ in range(20):
        assert tokens.verify(issuer.token("second")) is None
    assert issuer.requests == [KEYS]
    clock.seconds += MIN_INTERVAL_SECONDS
    assert tokens.verify(issuer.token("second")) is not None
    assert issuer.requests == [KEYS] * 2


def test_key_that_the_issuer_has_withdrawn_is_refused_after_an_hour(issuer: Issuer) -> None:
    clock = Clock()
    tokens = verifier(issuer, clock)
    token = issuer.token()
    assert tokens.verify(token) is not None
    issuer.keys = {"second": new_signing_key()}
    clock.seconds += 3600
    # The first token after an hour begins the fetch, and does not wait for it.
    assert tokens.verify(token, wait=False) is not None
    wait_until(lambda: is_unknown(tokens, token))
    assert tokens.verify(token) is None


def is_unknown(tokens: TokenVerifier, token: str) -> bool:
    """Return whether the key of a token is not known."""
    try:
        tokens.verify(token, wait=False)
    except UnknownKeyError:
        return True
    return False


def test_known_keys_remain_while_the_issuer_does_not_answer(issuer: Issuer) -> None:
    clock = Clock()
    tokens = verifier(issuer, clock)
    assert tokens.verify(issuer.token()) is not None
    issuer.replaced = {DISCOVERY: (500, b""), KEYS: (500, b"")}
    clock.seconds += 3600
    before = len(issuer.requests)
    assert tokens.verify(issuer.token(), wait=False) is not None
    wait_until(lambda: len(issuer.requests) > before)
    assert tokens.verify(issuer.token(), wait=False) is not None
    assert tokens.verify(issuer.token()) is not None


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (DISCOVERY, (404, b"")),
        (DISCOVERY, (200, b"<html>")),
        (DISCOVERY, (200, b"[]")),
        (DISCOVERY, (200, b'{"issuer": "https://other.example.com"}')),
        (DISCOVERY, (302, b"")),
        (KEYS, (200, b'{"keys": []}')),
        (KEYS, (200, b'{"keys": 3}')),
        (KEYS, (200, b" " * (1024 * 1024 + 1))),
    ],
)
def test_issuer_that_never_answered_with_keys_is_an_error(
    issuer: Issuer, path: str, answer: tuple[int, bytes]
) -> None:
    issuer.replaced = {path: answer}
    with pytest.raises(IssuerError):
        verifier(issuer).verify(issuer.token())


def test_discovered_keys_must_not_come_over_plain_http(issuer: Issuer) -> None:
    document = {"issuer": issuer.url, "jwks_uri": "http://login.example.com/keys"}
    issuer.replaced = {DISCOVERY: (200, json.dumps(document).encode())}
    with pytest.raises(IssuerError):
        verifier(issuer).verify(issuer.token())


def test_token_without_a_key_id_is_checked_with_the_only_key(issuer: Issuer) -> None:
    assert verifier(issuer).verify(issuer.token(None)) is not None
    issuer.keys["second"] = new_signing_key()
    assert verifier(issuer).verify(issuer.token(None)) is None


def test_key_for_encryption_is_not_used(issuer: Issuer) -> None:
    key = public_jwk("first", issuer.keys["first"]) | {"use": "enc"}
    issuer.replaced = {KEYS: (200, json.dumps({"keys": [key]}).encode())}
    assert verifier(issuer).verify(issuer.token()) is None


@pytest.mark.parametrize(
    ("claimed", "role", "names"),
    [
        (["ops"], Role.ADMIN, ()),
        (["team-a"], Role.EDITOR, ("a-",)),
        (["team-a", "team-b"], Role.EDITOR, ("a-", "b-", "shared-")),
        (["team-a", "all"], Role.EDITOR, ()),
        (["team-a", "ops"], Role.ADMIN, ()),
        (["readers", "nobody"], Role.VIEWER, ()),
        ("readers", Role.VIEWER, ()),
    ],
)
def test_claims_are_mapped_to_roles_and_rights(
    issuer: Issuer, claimed: object, role: Role, names: tuple[str, ...]
) -> None:
    mapping = {
        "ops": "admin",
        "team-a": "editor:a-",
        "team-b": "editor:b-,shared-",
        "all": "editor",
        "readers": "viewer",
    }
    tokens = verifier(issuer, oidc_roles=mapping, oidc_roles_claim="access.groups")
    found = tokens.verify(issuer.token(roles=None, access={"groups": claimed}))
    assert found == Caller("ada", role, names, "token")
    whole = tokens.verify(issuer.token("first", roles=None, **{"access.groups": claimed}))
    assert whole == found


def test_subject_cannot_forge_lines_of_a_log(issuer: Issuer) -> None:
    found = verifier(issuer).verify(issuer.token(sub="eve\n2026 INFO \x1b[31m" + "x" * 300))
    assert found is not None
    assert found.name == ("eve?2026 INFO ?[31m" + "x" * 300)[:200]
