"""The second kind of torture: processes that live and die at once while time passes and the store says no.

`conductor` starts processes and does them harm, `life` is one such process, `agents` what it carries out, `ledger` what
really happened outside of the store, and `checker`, which knows nothing of remit, what is wrong with all of that.
"""
