"""Reports about runs: trees, figures, pictures, and one conversion to JSON. Pure, like the core."""
