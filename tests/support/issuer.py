"""An issuer of tokens: a real HTTP server with a discovery document and public keys."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

if TYPE_CHECKING:
    from collections.abc import Iterator

AUDIENCE = "coincide"
DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"
_HOUR = 3600
SigningKey = RSAPrivateKey | ec.EllipticCurvePrivateKey | Ed25519PrivateKey
_CURVES: dict[str, ec.EllipticCurve] = {
    "ES256": ec.SECP256R1(),
    "ES384": ec.SECP384R1(),
    "ES512": ec.SECP521R1(),
}


def new_signing_key() -> RSAPrivateKey:
    """Return a new RSA key."""
    return generate_private_key(public_exponent=65537, key_size=2048)


def new_key_of(algorithm: str) -> SigningKey:
    """Return a new key for an algorithm of signatures."""
    if algorithm == "EdDSA":
        return Ed25519PrivateKey.generate()
    curve = _CURVES.get(algorithm)
    return new_signing_key() if curve is None else ec.generate_private_key(curve)


class Issuer:
    """An issuer and its keys.

    Parameters
    ----------
    port : int
        Port of its server.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.keys: dict[str, SigningKey] = {"first": new_signing_key()}
        # Answers that replace the ordinary ones, by path: status and body.
        self.replaced: dict[str, tuple[int, bytes]] = {}
        self.requests: list[str] = []

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return status and body of the answer to a request."""
        self.requests.append(path)
        if path in self.replaced:
            return self.replaced[path]
        if path == DISCOVERY:
            document: dict[str, Any] = {"issuer": self.url, "jwks_uri": self.url + KEYS}
        elif path == KEYS:
            document = {"keys": [public_jwk(name, key) for name, key in self.keys.items()]}
        else:
            return 404, b""
        return 200, json.dumps(document).encode()

    def claims(self, **changes: object) -> dict[str, Any]:
        """Return the claims of a valid token of a viewer; None removes a claim."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada",
            "iat": now,
            "exp": now + _HOUR,
            "roles": ["viewer"],
            **changes,
        }
        return {name: it for name, it in claims.items() if it is not None}

    def token(self, key_id: str | None = "first", **changes: object) -> str:
        """Return a token that is signed with an RSA key of the issuer."""
        return self.sign(self.claims(**changes), key_id)

    def sign(
        self, claims: dict[str, Any], key_id: str | None = "first", algorithm: str = "RS256"
    ) -> str:
        """Return claims that are signed with a key of the issuer."""
        headers = None if key_id is None else {"kid": key_id}
        key = self.keys[key_id or "first"]
        return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


def public_jwk(key_id: str, key: SigningKey) -> dict[str, Any]:
    """Return the public part of a key as a JSON Web Key."""
    found: dict[str, Any]
    if isinstance(key, RSAPrivateKey):
        found = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, Ed25519PrivateKey):
        found = jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        found = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return found | {"kid": key_id, "use": "sig"}


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Run an issuer in a thread until the block ends."""
    issuer: Issuer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = issuer.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
