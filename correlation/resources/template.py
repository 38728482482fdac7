"""Templates: named histograms that events refer to.

Definitions. A *template* (PTJ Definition 4) is a histogram φ under a name. An event detected at t
has the timestamp φ + t - max(φ): its latest time is t.

Reference. Mok, Woo and Lee 2006, Definition 4; spec section 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from correlation.resources.checks import check_name
from correlation.resources.histogram import Histogram


@dataclass(frozen=True, slots=True)
class Template:
    """A registered histogram (PTJ Definition 4).

    Parameters
    ----------
    name : str
        Name by which events refer to the template.
    histogram : Histogram
        φ; converted to offsets from its latest time.
    version : int
        Version of the template under this name, from 1.

    Raises
    ------
    InvalidFieldError
        The name is not valid.
    """

    name: str
    histogram: Histogram
    version: int = 1

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "histogram", self.histogram.shape())

    def at(self, detected_us: int) -> Histogram:
        """Return the timestamp of an event detected at t: φ + t - max(φ).

        Parameters
        ----------
        detected_us : int
            t, in microseconds.

        Raises
        ------
        InvalidFieldError
            The result exceeds the range of times.
        """
        return self.histogram.moved(detected_us)
