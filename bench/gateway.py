"""Streams through the gateway beside the same streams without it: `make bench-gateway`.

A provider on loopback writes the time into each event that it sends. A client asks it directly, then through the
gateway of a turn whose money is limited, in a store on disk. Provider, gateway and client are three processes.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import page
from machine import Machine, sentence
from neighbours import Finding

TOKENS = 25  # each may have eight requests at a time
_TICKS = os.sysconf("SC_CLK_TCK")
_PROVIDER = """
import asyncio, json, time

def event(**data):
    return f"event: {data['type']}\\ndata: {json.dumps(data)}\\n\\n".encode()

async def serve(reader, writer):
    while head := await reader.readuntil(b"\\r\\n\\r\\n"):
        length = next(int(line[15:]) for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length:"))
        body = json.loads(await reader.readexactly(length))
        events, every = map(int, body["metadata"]["user_id"].split(","))
        kind = b"content-type: text/event-stream\\r\\ntransfer-encoding: chunked"
        writer.write(b"HTTP/1.1 200 OK\\r\\n" + kind + b"\\r\\n\\r\\n")
        def send(data):
            writer.write(b"%x\\r\\n%b\\r\\n" % (len(data), data))
        usage = {"input_tokens": 100, "output_tokens": 1}
        send(event(type="message_start", message={"model": "claude-x", "usage": usage}))
        for _ in range(events):
            delta = {"type": "text_delta", "text": f"{time.monotonic_ns()} "}
            send(event(type="content_block_delta", index=0, delta=delta))
            await writer.drain()
            if every:
                await asyncio.sleep(every / 1000)
        send(event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 50}))
        send(event(type="message_stop"))
        send(b"")
        await writer.drain()

async def main():
    async def safe(reader, writer):
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
    server = await asyncio.start_server(safe, "127.0.0.1", 0, limit=2**20, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
_GATEWAY = """
import asyncio, contextlib, json, statistics, sys, time
from remit import Bounds, Runtime
from remit.adapters.gateway.clients import gateway_for
from remit.adapters.prices import KnownPrices, Price
from remit.engine.directory import AgentRules
from remit.core.card import Card
from remit.settings import System

provider, store, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def desk(turn):
    costs = []
    for number in range(50):
        before = time.perf_counter()
        await turn.once(f"k{number}", int)
        costs.append((time.perf_counter() - before) * 1000)
    async with contextlib.AsyncExitStack() as stack:
        base = {"anthropic": f"http://127.0.0.1:{provider}"}
        opened = [await stack.enter_async_context(gateway_for(turn, ["anthropic:claude-x"], base_url=base))
                  for _ in range(tokens)]
        told = {"port": int(opened[0].url.rpartition(":")[2]), "tokens": [one.token for one in opened],
                "transaction": statistics.median(costs)}
        print(json.dumps(told), flush=True)
        await asyncio.to_thread(sys.stdin.read)
    return "done"

async def main():
    prices = KnownPrices({"claude-x": Price(input="$1", output="$2")})
    async with Runtime(store, system=System(prices=prices)) as rt:
        rt.add(Card("desk"), desk, rules=AgentRules(iterations=1_000_000), timeout=3600)
        await rt.run("desk", "pass requests on", credits="$100000", within=Bounds(requests=1_000_000))
        assert not await rt.workspace.money.uncertain(), "each stream was settled"
        print(json.dumps((await rt.workspace.money.spend()).total.credits), flush=True)

asyncio.run(main())
"""


class Way(NamedTuple):
    """A port that answers requests, with the tokens that it takes, and its process."""

    port: int
    tokens: list[str]
    pid: int

    @property
    def cpu(self) -> float:
        """Milliseconds of processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS

    @property
    def memory(self) -> float:
        """Resident memory in MB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Streamed(NamedTuple):
    """A stream as a client saw it, in milliseconds: until the first byte of its body, and behind each event."""

    first: float
    lags: list[float]


async def stream(way: Way, number: int, *, events: int, every: int = 0, size: int = 1_000) -> Streamed:
    """Ask for one answer over a connection of its own."""
    said = f"{number} {'x' * size}"
    body = json.dumps(
        {
            "model": "claude-x",
            "max_tokens": 8_000,
            "stream": True,
            "metadata": {"user_id": f"{events},{every}"},
            "messages": [{"role": "user", "content": said}],
        }
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port, limit=2**20)
    token = way.tokens[number % len(way.tokens)]
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{way.port}\r\nx-api-key: {token}\r\n"
    asked = time.perf_counter()
    writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    status = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in status.split(b"\r\n")[0], status + await reader.read(2_000)
    await reader.readline()  # the length of the first chunk
    first = (time.perf_counter() - asked) * 1000
    lags: list[float] = []
    while not (line := await reader.readline()).startswith(b"event: message_stop"):
        assert line, "the stream broke off"
        if b"text_delta" in line and line.startswith(b"data: "):
            stamp = json.loads(line[6:])["delta"]["text"]
            lags.append((time.monotonic_ns() - int(stamp)) / 1e6)
    writer.close()
    assert len(lags) == events, f"{len(lags)} of {events} events"
    return Streamed(first, lags)


async def one_by_one(way: Way, times: int, **how: Any) -> list[Streamed]:
    return [await stream(way, number, **how) for number in range(times)]


async def at_once(way: Way, times: int, **how: Any) -> list[Streamed]:
    return await asyncio.gather(*(stream(way, number, **how) for number in range(times)))


def spread(values: list[float]) -> tuple[float, float]:
    """The median, and the slowest of 95 %."""
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


async def measured(direct: Way, through: Way, transaction: float, share: float) -> list[Finding]:
    # Memory first: what a crowd of streams leaves free afterwards would hide what the others keep.
    times, found = max(3, int(100 * share)), await memory(through, max(50, int(2_000 * share)))
    limit = {1_000: 3 + transaction, 120_000: None}
    for size, name in ((1_000, "1 kB"), (120_000, "120 kB")):
        bare = spread([one.first for one in await one_by_one(direct, times, events=1, size=size)])
        ours = spread([one.first for one in await one_by_one(through, times, events=1, size=size)])
        found += [
            Finding(f"first byte, body of {name}, direct: median", "ms", bare[0]),
            Finding("the same through the gateway: median; at most 3 ms and a transaction more", "ms", ours[0]),
            Finding("the same: slowest of 95 %", "ms", ours[1]),
            Finding("more than direct: median", "ms", ours[0] - bare[0], limit[size]),
        ]
    for streams, aim in ((1, 1.0), (50, None), (200, 50.0)):
        number = max(2, int(streams * share)) if streams > 1 else 1
        events = max(10, int(100 * share))
        for way, name in ((direct, "direct"), (through, "through the gateway")):
            told = await at_once(way, number, events=events, every=20)
            median, slow = spread([lag for one in told for lag in one.lags])
            is_ours = way is through
            of_median = aim if is_ours and streams == 1 else None
            found.append(Finding(f"event lag, {number} at once, {name}: median", "ms", median, of_median))
            of_slow = aim if is_ours and streams > 1 else None
            found.append(Finding("the same: slowest of 95 %", "ms", slow, of_slow))
            if streams > 1 and is_ours:
                found.append(Finding("first byte of the slowest of them", "ms", max(one.first for one in told)))
    before = through.cpu
    await one_by_one(through, times, events=50)
    found.append(Finding("processor time of a stream of 50 events", "ms", (through.cpu - before) / times))
    return found


async def memory(way: Way, streams: int) -> list[Finding]:
    """Pass many streams, eight at a time, and look at the memory after a tenth of them and after all."""
    told: list[float] = []
    for part in (streams // 10, streams - streams // 10):
        for begin in range(0, part, 8):
            await at_once(way, min(8, part - begin), events=20)
        told.append(way.memory)
    grown = f"memory more after {streams:,} streams than after {streams // 10:,}"
    return [Finding("memory after the first tenth", "MB", told[0]), Finding(grown, "MB", told[1] - told[0], 10)]


@contextmanager
def running(source: str, *given: str) -> Generator[tuple[Any, subprocess.Popen[str]]]:
    """A process that has said a line of JSON. Its standard input is closed at the end."""
    argv = [sys.executable, "-c", source, *given]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline()), process
        finally:
            if source is _PROVIDER:
                process.terminate()
            process.communicate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the load")
    parser.add_argument("--page", action="store_true", help="put the table into docs/performance.md too")
    given = parser.parse_args()
    machine = Machine()
    with TemporaryDirectory(prefix="remit-bench-") as folder, running(_PROVIDER) as (port, provider):
        os.environ["ANTHROPIC_API_KEY"] = "sk-of-the-bench"
        store = str(Path(folder) / "store.db")
        with running(_GATEWAY, str(port), store, str(TOKENS)) as (told, gateway):
            direct = Way(port, ["none"], provider.pid)
            through = Way(told["port"], told["tokens"], gateway.pid)
            found = asyncio.run(measured(direct, through, told["transaction"], 0.05 if given.quick else 1.0))
    found.append(Finding("a transaction of the store: median", "ms", told["transaction"]))
    rows = [[one.what, f"{page.number(one.figure)} {one.unit}", *one.verdict.partition(": ")[::2]] for one in found]
    body = f"{sentence(machine.told())}\n\n{page.table(['what', 'figure', 'aim', 'verdict'], rows, ('aim', 'verdict'))}"
    if given.page:
        page.write("gateway", body)
    print(body)
    return 1 if any("missed" in one.verdict for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
