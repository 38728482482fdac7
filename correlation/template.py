"""Templates: named histograms that events refer to.

Definitions. A *template* (PTJ Definition 4) is a histogram φ under a name. An event detected at t
has the timestamp φ + t - max(φ): its latest time is t.

Reference. Mok, Woo and Lee 2006, Definition 4; spec section 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from correlation.checks import check_name
from correlation.errors import InvalidFieldError
from correlation.histogram import VERSION, Histogram, check_version


@dataclass(frozen=True, slots=True)
class Template:
    """A registered histogram (PTJ Definition 4).

    Parameters
    ----------
    name : str
        Under which events refer to it.
    histogram : Histogram
        φ; held as offsets from its latest time, whatever it was measured from.

    Raises
    ------
    InvalidFieldError
        If the name is none.
    """

    name: str
    histogram: Histogram

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "histogram", self.histogram.shape())

    def at(self, detected_us: int) -> Histogram:
        """Return the timestamp of an event detected at a time: φ + t - max(φ).

        Parameters
        ----------
        detected_us : int
            t, microseconds.

        Raises
        ------
        InvalidFieldError
            If it leaves the range of times.
        """
        return self.histogram.moved(detected_us)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Template:
        """Read the document of a template; raises as `Histogram.from_document`."""
        check_version(document)
        name = document.get("name")
        if not isinstance(name, str):
            raise InvalidFieldError("name", "is not a text", "write the template's name")
        return cls(name, Histogram.from_buckets(document.get("buckets")))

    def to_document(self) -> dict[str, Any]:
        """Write it as a plain document: `{"v": 1, "name": …, "buckets": […]}`."""
        return {"v": VERSION, "name": self.name, "buckets": self.histogram.to_buckets()}
