"""Processes, and how they notice each other."""
