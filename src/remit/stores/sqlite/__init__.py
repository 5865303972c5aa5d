"""SQLite: one file, or memory."""
