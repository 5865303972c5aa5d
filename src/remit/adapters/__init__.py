"""Adapters to other systems: agents of other frameworks, programs, channels, prices, vaults. Each adapter uses the
ports and the core, never another adapter. Shared code of channels is in `asking`, of frameworks in `guests`; `process`
runs programs, whether as agents, tools or servers."""
