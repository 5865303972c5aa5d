"""The gateway: model APIs on loopback for programs, under the remit of the task that the program works on."""

from importlib.util import find_spec

from remit.errors import BadInput

for _name in ("aiohttp", "httptools", "httpx", "httpx_aiohttp", "uvicorn"):
    if find_spec(_name) is None:
        raise BadInput(
            "programs, clients and coding agents that reach models and agents through remit need "
            f"pip install 'remit[gateway]' (there is no module {_name!r})"
        )
