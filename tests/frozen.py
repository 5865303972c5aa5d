"""Imported last by the process from which programs are forked: what it has imported stays for ever, so no collection
looks through it in a fork, where each look would copy the page."""

import gc

gc.collect()
gc.freeze()
