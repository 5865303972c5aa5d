"""The runtime and the workspace: the public API, which connects the engine with the stores."""
