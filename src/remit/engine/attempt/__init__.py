"""One live try at a task, from its admission to its one end."""
