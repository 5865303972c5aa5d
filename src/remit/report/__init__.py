"""Look at what happened: trees, figures, pictures, and one way to JSON. Pure, like the core."""
