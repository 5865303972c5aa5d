"""The handlers of the routes. Each calls one method of the workspace and returns values."""
