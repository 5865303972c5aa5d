"""Money: what a task may spend, what is held for its calls, and what becomes of that."""
