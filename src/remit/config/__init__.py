"""Teams as files: `remit.toml` is read, checked as a whole, and turned into a runtime."""
