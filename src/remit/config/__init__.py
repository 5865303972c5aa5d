"""A team is a file: `remit.toml` is read, checked as a whole, and made into a runtime."""
