"""Shared code of the framework adapters: the turn, verbs as tools, client errors, and storable text."""

from remit.adapters.guests.asking import (
    MAX_TOKENS,
    Prompt,
    choice_of,
    digest_of,
    key_inside,
    key_of,
    prompt_of,
    prompted,
    size_of,
    the_turn,
    told,
    usage_of,
    verb_function,
)
from remit.adapters.guests.deps import NO_DEPS, checked_deps, deps_of
from remit.adapters.guests.failures import failure_of
from remit.adapters.guests.nested import (
    Governing,
    Ungoverned,
    from_thread,
    governing,
    is_own,
    on_loop_of_turn,
    run_of,
)
from remit.adapters.guests.talking import NextRequest, conversed
from remit.adapters.guests.text import MOST_CALLS, clean, clean_json, json_of, left_out, shortened, unlike, without

__all__ = [
    "MAX_TOKENS",
    "MOST_CALLS",
    "NO_DEPS",
    "Governing",
    "NextRequest",
    "Prompt",
    "Ungoverned",
    "checked_deps",
    "choice_of",
    "clean",
    "clean_json",
    "conversed",
    "deps_of",
    "digest_of",
    "failure_of",
    "from_thread",
    "governing",
    "is_own",
    "json_of",
    "key_inside",
    "key_of",
    "left_out",
    "on_loop_of_turn",
    "prompt_of",
    "prompted",
    "run_of",
    "shortened",
    "size_of",
    "the_turn",
    "told",
    "unlike",
    "usage_of",
    "verb_function",
    "without",
]
