"""Where today's code is known to differ from what the model says. A name here switches the model to today's behaviour;
the list is to become empty, and then this file and every question about it goes."""

KNOWN: frozenset[str] = frozenset(
    {
        "denies",  # cards deny no tools yet
        "writes",  # nobody passes writing on; a card that is silent writes wherever the ceiling lets it see
        "person-tools",  # a person passes all tools on
        "command-passes",  # a handoff passes nothing along
        "heir-sight",  # a person's sight goes on to whoever the task is handed to
        "wrote-address",  # what it wrote is whatever stands there now, and only for the turn that wrote it
        "remove-order",  # removing is first refused as not seen, then as not writable
        "same-version",  # after a removal versions begin again
        "same-key",  # the same key is the same task, whatever it is for; it holds in the run, not in the asking task
        "same-request",  # what is passed along is not part of a request's identity
        "guards-last",  # a request that was made before is answered before the guards are asked
        "tasks",  # a run may have any number of tasks
        "handoffs-by-task",  # the bound on handoffs counts for each task, not for the run
        "default-deadline",  # what is submitted in a run ends when the run's time would have been up
        "strangers-tasks",  # a turn reads, awaits, cancels and retries any task of the workspace whose id it knows
        "chain-texts",  # the texts of the hops above are in the remit
        "session-messages",  # messages belong to a session, not to a run
    }
)


def today(difference: str) -> bool:
    return difference in KNOWN
