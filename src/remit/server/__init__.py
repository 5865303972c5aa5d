"""remit over HTTP: one table of routes in front of the workspaces of a store."""
