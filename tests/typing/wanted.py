"""What the docs say and remit takes, and a type checker does not accept yet: the fields have the types of their inside
form, not of what people write."""

from datetime import UTC, datetime

from remit import BOARD, Bounds, Card, Pass, Scope

Bounds(agents=["coder"], tools="*", sees=["spec"], deadline=datetime(2030, 1, 1, tzinfo=UTC), credits="$0.50")
Card("coder", can=["write code"], asks="*", reads=[BOARD, Scope("spec", prefix="a")], tools=["read_file"])
Pass("coder", "write it", sees=["spec"], tools=["read_file"])
