"""Agents and services of other systems. Each adapter knows the ports and the core, never another adapter; what channels
have in common is in `asking`, what frameworks of agents have in common in `guests`."""
