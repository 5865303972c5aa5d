"""The imperative shell: gathers facts, asks the core, acts."""
