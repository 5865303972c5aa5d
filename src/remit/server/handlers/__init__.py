"""What each route does: it calls one verb of the workspace, and returns values."""
