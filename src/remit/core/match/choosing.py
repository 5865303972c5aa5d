"""Choosing: who of those that were found is asked without asking back, and what is said when that is nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from remit.core.card import Card

FEW: Final = 3  # words: of so few every one must be found; of more, at least two
BEST: Final = 3  # how many are listed
ANYTHING: Final = 0.01  # the score of whoever can do anything: asked when no one can do just this


class Certainty(NamedTuple):
    """How sure it must be who can do something, to be asked by a capability: the least `score` of an agent, from 0 to
    1, and the `margin` by which it is ahead of the next."""

    score: float = 0.22
    margin: float = 0.08


CALIBRATED: Final = Certainty()


@dataclass(frozen=True, slots=True)
class Match:
    """An agent that was found: its score from 0 to 1, and why.

    `fits` says that it has enough of what is wanted to be asked without asking back, `direct` that it names the very
    capability, `free` that it can be asked now: its breaker lets it, and it has room; `chosen` that it is the one that
    a delegation by capability asks.
    """

    card: Card
    score: float
    why: str
    fits: bool = False
    direct: bool = False
    free: bool = True
    chosen: bool = False


def enough(score: float, found: int, words: int, least: float) -> bool:
    """Tell whether a card has enough of what is wanted, by its score and how many of the words it has."""
    return score >= least and found >= (words if words <= FEW else 2)


def behind(matches: Sequence[Match], hindered: Mapping[str, str]) -> list[Match]:
    """Put those that cannot be asked now behind the others, and say why they are there."""
    free = [match for match in matches if match.card.name not in hindered]
    others = [match for match in matches if match.card.name in hindered]
    return free + [replace(one, free=False, why=f"{one.why}; {hindered[one.card.name]}") for one in others]


def choice(matches: Sequence[Match], certainty: Certainty = CALIBRATED) -> Match | None:
    """Choose whom to ask without asking back: the one that names the capability itself, or that has enough of what is
    wanted and is clearly ahead of the next. None if that is nobody. Those that can be asked now come first."""
    margin = certainty.margin
    return _choice([match for match in matches if match.free], margin) or _choice(matches, margin)


def _choice(matches: Sequence[Match], margin: float) -> Match | None:
    fit = [match for match in matches if match.fits]
    if not fit:
        return next((match for match in matches if match.score == ANYTHING), None)
    if direct := [match for match in fit if match.direct]:
        return direct[0]
    best = max(fit, key=lambda match: match.score)
    ahead = best.score - max([match.score for match in matches if match is not best], default=0.0)
    return best if ahead >= margin else None


def unclear(wanted: str, matches: Sequence[Match], others: Sequence[Card]) -> str:
    """Return the refusal when no agent can be chosen: it lists the best three with their scores, or else some of the
    agents that may be asked at all."""
    if matches:
        said, listed = f"it is not clear who can {wanted}; the nearest are", [_scored(one) for one in matches[:BEST]]
    else:
        said, listed = f"no one you may ask can {wanted}; there is", [_told(card) for card in others[:BEST]]
    if not listed:
        return f"no one you may ask can {wanted}; do it yourself or finish without"
    more = f" and {len(others) - BEST} more" if not matches and len(others) > BEST else ""
    return f"{said}: {'; '.join(listed)}{more}. Ask one of them by name, do it yourself or finish without"


def _scored(match: Match) -> str:
    said = f"{_about(match.card)}; score {match.score:.2f}".removeprefix("; ")
    return f"{match.card.name} ({said}{'' if match.free else '; not now'})"


def _told(card: Card) -> str:
    about = _about(card)
    return f"{card.name} ({about})" if about else card.name


def _about(card: Card) -> str:
    return f"can {', '.join(card.can)}" if card.can else card.role
