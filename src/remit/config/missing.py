"""Keys, prices and folders that a team's file expects and that this machine lacks.

`remit check` warns of each. A run does not stop: the workspace may store a key of its own, and a model may never be
asked.
"""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from remit.adapters.providers import default_key, endpoint_of, provider_of
from remit.config.linking import models_of, tables_of, texts
from remit.config.places import store_in
from remit.config.reading import Document
from remit.config.scripts import SCRIPT
from remit.core.prices import Price
from remit.core.recovery import on_loopback
from remit.errors import BadInput
from remit.ports import Prices
from remit.stores.addresses import is_server


def warn_of_missing(read: Document) -> None:
    """Add a warning for each key, price and folder that is missing here."""
    _folder(read)
    prices = _prices(read) if _limits_money(read.tables) else None
    for name, table in tables_of(read.tables, "agents").items():
        for model in models_of(table):
            if not model.startswith(SCRIPT) and model != "test":
                at = ("agents", name, "model" if model == table.get("model") else "fallback")
                url = table.get("base_url") if model == table.get("model") else None
                _key(read, at, model, table, url)
                if prices is not None:
                    _price(read, at, model, prices, url)


def _key(read: Document, at: tuple[str, ...], model: str, table: Mapping[str, Any], url: str | None) -> None:
    provider = provider_of(model)
    same = provider == provider_of(str(table.get("model", "")))
    if same and (texts(table.get("keys")) or url or table.get("base_url")):
        return  # named keys are checked elsewhere, and a custom address may need no key
    key = default_key(provider)
    if key and not os.environ.get(key):
        sentence = f"the environment variable {key} is not set, which holds the key of {provider}; set it, or name "
        read.problems.add(at, sentence + 'another with keys = ["NAME"]', warning=True)


def _price(read: Document, at: tuple[str, ...], model: str, prices: Prices, url: str | None) -> None:
    if prices.worst(model, 0, 1) is None and not on_loopback(endpoint_of(provider_of(model), url)):
        sentence = f'the price of {model} is not known, and money is limited here; name it: [prices."{model}"] with '
        read.problems.add(at, sentence + 'input = "$1" and output = "$2" for a million tokens', warning=True)


class _NoPrices:
    """A price list without prices."""

    def cost(self, model: str, usage: object) -> None:
        return None

    def worst(self, model: str, input_tokens: int, max_output: int) -> None:
        return None


def _prices(read: Document) -> Prices:
    said = {name: Price(**table) for name, table in tables_of(read.tables, "prices").items()}
    try:
        return cast("Prices", import_module("remit.adapters.prices").KnownPrices(said))
    except BadInput:
        return _NoPrices()


def _limits_money(tables: Mapping[str, Any]) -> bool:
    listed = tables.get("limits", ())
    limits = cast("list[Mapping[str, Any]]", listed) if isinstance(listed, list) else []
    counted = tables.get("policy", {}).get("unknown_price") == "tokens"
    return not counted and any("credits" in one for one in (tables.get("run", {}), tables.get("bounds", {}), *limits))


def _folder(read: Document) -> None:
    store = store_in(read.tables.get("store", {}), read.file.parent)
    if store and not is_server(str(store)):
        folder = (read.file.parent / str(store)).parent
        if not folder.is_dir():
            read.problems.add(
                ("store", "path"), f"there is no folder {folder}; make it: mkdir -p {folder}", warning=True
            )
