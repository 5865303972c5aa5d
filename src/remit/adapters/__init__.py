"""Agents and services of other systems. Each adapter knows the ports and the core, never another adapter; what channels
have in common is in `asking`, what frameworks have in common in `guests`, and how programs are run, whether as agents,
tools or servers, in `process`."""
