"""The clauses of a store's contract, by what they are about."""
