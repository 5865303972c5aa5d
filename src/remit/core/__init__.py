"""The rules, as pure functions and immutable values: no I/O, no clock, no random numbers, no async. Time and facts are
arguments."""
