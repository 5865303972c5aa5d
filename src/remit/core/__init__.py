"""The rules, pure: no I/O, no clock, no dice, no async. Time and facts come in as arguments."""
