"""Upkeep of a workspace: keys, pruning, statistics, integrity."""
