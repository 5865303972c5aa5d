"""The tools of this team. A tool is a function: models see its name, its docstring and its types."""

import re

NUMBER = re.compile(r"\d+")
ORDERS = {"17": ("a brass lamp", 89), "18": ("two bulbs", 6)}


def find_order(text: str) -> str:
    """Find the order whose number is in a text."""
    number = _number(text)
    if number is None:
        return "We need the number of your order to look it up."
    thing, price = ORDERS[number]
    return f"Order {number} is {thing} for ${price}."


def refund(text: str) -> str:
    """Refund the order whose number is in a text."""
    number = _number(text)
    if number is None:
        return "Nothing was given back."
    return f"${ORDERS[number][1]} are on their way back to you."


def _number(text: str) -> str | None:
    return next((number for number in NUMBER.findall(text) if number in ORDERS), None)
