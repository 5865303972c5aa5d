"""Models and their tools in the engine: recorded, paid for and governed."""
