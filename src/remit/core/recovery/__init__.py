"""Recovery: what a model's failure means, who rests after it, and whom to ask next."""

from remit.core.recovery.asking import (
    OWN_KEY,
    TRIMS,
    WAITS,
    Choice,
    GaveUp,
    ModelTry,
    Situation,
    Tried,
    own_key,
    recovery,
    resting,
    sentence,
)
from remit.core.recovery.cooling import FRESH, RESTS, Cooling, after, cleared
from remit.core.recovery.failures import KEY_KINDS, FailureKind, ModelFailure, charged, kind_of

__all__ = [
    "FRESH",
    "KEY_KINDS",
    "OWN_KEY",
    "RESTS",
    "TRIMS",
    "WAITS",
    "Choice",
    "Cooling",
    "FailureKind",
    "GaveUp",
    "ModelFailure",
    "ModelTry",
    "Situation",
    "Tried",
    "after",
    "charged",
    "cleared",
    "kind_of",
    "own_key",
    "recovery",
    "resting",
    "sentence",
]
