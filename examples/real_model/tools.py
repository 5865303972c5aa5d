"""What the forecaster works with."""

from typing import Literal

DEGREES = {"Lisbon": 19, "Nairobi": 24, "Osaka": 11, "Quito": 16}


def thermometer(city: Literal["Lisbon", "Nairobi", "Osaka", "Quito"]) -> str:
    """Read the thermometer of a city."""
    return f"In {city} it is {DEGREES[city]} degrees."
