"""Stores for SQLite and PostgreSQL. One algorithm; each database adds a dialect."""
