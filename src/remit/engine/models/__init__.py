"""Models and their tools, as the engine sees them: asked once, paid for, and told the truth."""
