"""Whom a claim does not have to trust: how a release was made by several parties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

SECURE_AGGREGATION: Final = "secure aggregation"
SITE_NOISE: Final = "site noise"
MOST_PARTIES: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Trust:
    """How the parties of a release made it, and against whom its claim holds.

    Without one, a single holder of the data drew the noise, and is trusted to have done so.

    Attributes
    ----------
    model : str
        ``"secure aggregation"``: sites added shares of noise inside a masked sum; ``"site noise"``: each
        site added noise of its own, and the results were added.
    parties : int
        How many sites there are.
    dropouts : int
        How many of them may have left before the sum was opened.
    colluding : int
        How many sites may use what they know, their share of noise included, alone or together with the
        server. With 0 sites of a secure aggregation the claim does not hold against the sites themselves.

    Examples
    --------
    >>> Trust(SECURE_AGGREGATION, 20, dropouts=4, colluding=2).honest
    14
    """

    model: str
    parties: int
    dropouts: int = 0
    colluding: int = 0

    def __post_init__(self) -> None:
        whole = (self.parties, self.dropouts, self.colluding)
        if self.model not in _SENTENCES or any(type(each) is not int for each in whole):
            raise ValueError("trust")
        if not 1 <= self.parties <= MOST_PARTIES or min(whole) < 0 or self.honest < 1:
            raise ValueError("parties")

    @property
    def honest(self) -> int:
        """How many parties certainly contribute noise that no adversary knows."""
        return self.parties - self.dropouts - self.colluding

    def sentence(self) -> str:
        """Against whom the claim holds, in plain words."""
        others = (
            f" and up to {self.colluding} of these sites, alone or together" if self.colluding else _NO_SITE
        )
        return _SENTENCES[self.model].format(
            n=self.parties, others=others, least=self.parties - self.dropouts
        )

    def assumptions(self) -> tuple[str, ...]:
        """What the claim assumes of the parties."""
        if self.model == SECURE_AGGREGATION and not self.colluding:
            return ("no site uses its own share of the noise, which it knows",)
        return ()

    def as_json(self) -> dict[str, Any]:
        """The model for a file's header."""
        return {
            "model": self.model,
            "parties": self.parties,
            "dropouts": self.dropouts,
            "colluding": self.colluding,
        }

    @classmethod
    def from_json(cls, data: Any) -> Trust:
        """The model of a file's header; ValueError or TypeError for none that could have been written."""
        if not isinstance(data, dict) or set(data) != {"model", "parties", "dropouts", "colluding"}:
            raise ValueError("trust")
        return cls(data["model"], data["parties"], data["dropouts"], data["colluding"])


_NO_SITE: Final = ", and not against the sites themselves, each of which knows its own share of the noise"
_SENTENCES: Final = {
    SECURE_AGGREGATION: (
        "At least {least} of {n} sites added noise inside a sum that nobody sees without it; the claim holds "
        "against the server{others}."
    ),
    SITE_NOISE: (
        "Each of {n} sites added noise of its own before anything left it, and the results were added; the "
        "claim of a site's records rests on that site alone."
    ),
}
