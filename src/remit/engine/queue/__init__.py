"""Queued tasks, which outlive the process that requested them."""
