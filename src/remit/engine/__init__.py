"""The imperative shell: it gathers facts, asks the core, and acts."""
