"""`remit agents`: who can be asked, without importing a team."""

import asyncio

from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.terminal import tabled
from remit.core.allow import spelled
from remit.core.card import Card
from remit.report import wire
from remit.report.figures import age
from remit.report.printable import escaped


def agents(*, place: Where = HERE, json: AsJson = False) -> None:
    """List the agents that workers of this store have published, and whom each may ask.

    Parameters
    ----------
    json
        Print whole cards as JSON.
    """
    with opened(place) as workspace:
        now = workspace.clock.now()
        cards = asyncio.run(workspace.read(lambda view: view.cards()))
    if json:
        emit([wire.card(card, at) for card, at in cards])
    elif not cards:
        out().print(Text("no worker has published its agents here yet; start one: remit worker module:runtime", "dim"))
    else:
        names = ("agent", "can", "asks", "published")
        out().print(tabled(names, [_row(card, now - at) for card, at in cards], left=3, gives_way="can"))


def _row(card: Card, elapsed: int) -> list[Text | str]:
    can = "; ".join(card.can) or card.role or card.instructions
    return [Text(escaped(card.name, 64), "bold"), escaped(can, 200), escaped(spelled(card.asks), 60), age(elapsed)]
