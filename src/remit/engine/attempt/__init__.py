"""One attempt at a task, from its admission to its end."""
