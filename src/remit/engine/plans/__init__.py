"""Several steps, run by one or many members."""
