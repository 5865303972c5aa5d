"""The clauses of the store contract, by subject."""
