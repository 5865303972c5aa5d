"""PostgreSQL: one server, any number of processes."""
