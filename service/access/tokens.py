"""Bearer tokens of an OpenID Connect issuer: JSON Web Tokens (RFC 7519) signed by the issuer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jwt

from service.access.callers import Caller, Role
from service.access.signing_keys import SigningKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.settings import Settings

# Max difference of the clocks of issuer and service.
_LEEWAY_SECONDS = 30
_REQUIRED = ("exp", "iss", "aud", "sub")
_MAX_CHARACTERS = 16_384
_NAME_CHARACTERS = 200


class TokenVerifier:
    """Finds callers by their tokens; any thread may ask.

    Parameters
    ----------
    settings : Settings
        Issuer, audience, accepted algorithms, and the roles of claims.
    seconds : callable
        Returns a monotonic time in seconds.
    """

    def __init__(self, settings: Settings, seconds: Callable[[], float]) -> None:
        self._settings = settings
        self._keys = SigningKeys(settings, seconds)

    def verify(self, token: str, *, wait: bool = True) -> Caller | None:
        """Return the caller of a token; None: the token is not valid.

        The algorithm is one of the accepted ones, whatever the token claims. Signature, issuer,
        audience, `exp` and `nbf` are checked.

        Parameters
        ----------
        token : str
            The token.
        wait : bool
            Ask the issuer for an unknown key.

        Raises
        ------
        UnknownKeyError
            When the key is not known, without `wait`.
        IssuerError
            When the keys of the issuer could never be fetched.
        """
        if len(token) > _MAX_CHARACTERS:
            return None
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in settings.oidc_algorithms:
                return None
            key_id = header.get("kid")
            key = self._keys.find(key_id) if wait else self._keys.known(key_id)
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(settings.oidc_algorithms),
                issuer=settings.oidc_issuer,
                audience=settings.oidc_audience,
                leeway=_LEEWAY_SECONDS,
                options={"require": list(_REQUIRED)},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            # The last two: the key has another type than the algorithm needs.
            return None
        return self._caller(claims)

    def _caller(self, claims: Mapping[str, Any]) -> Caller | None:
        """Return the caller with the highest role of its claims; None without any role."""
        known = self._settings.oidc_roles
        rights = [
            known[it] for it in _strings_at(claims, self._settings.oidc_roles_claim) if it in known
        ]
        roles = {Role[it.partition(":")[0].upper()] for it in rights}
        name = "".join(it if it.isprintable() else "?" for it in str(claims["sub"]))
        if not roles:
            return None
        prefixes = [it.partition(":")[2] for it in rights if it.startswith("editor")]
        names = () if "" in prefixes else tuple(",".join(prefixes).split(","))
        return Caller(
            name[:_NAME_CHARACTERS],
            max(roles),
            names if max(roles) == Role.EDITOR else (),
            "token",
            expires_at_us=(int(claims["exp"]) + _LEEWAY_SECONDS) * 1_000_000,
        )


def _strings_at(claims: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the strings of a claim: one string, or a list of them.

    A claim with the whole name precedes nested claims: names of claims may be URLs.
    """
    found: object = claims.get(path)
    if found is None:
        found = claims
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        yield found
    elif isinstance(found, list):
        yield from (it for it in found if isinstance(it, str))
