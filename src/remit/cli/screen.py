"""Watching runs: growing trees in a terminal, with the models' text below them; plain lines everywhere else."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final, NamedTuple, Protocol, Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from remit.cli.above import above
from remit.cli.drawing import tree_view
from remit.core.events import Event, read
from remit.core.kinds.workspace import BreakerSet
from remit.core.lifecycle import TERMINAL, Progress
from remit.engine.system import SystemClock
from remit.ports.models import TextChunk
from remit.report.lines import detail, plain_line
from remit.report.printable import block
from remit.report.tree import Growing, Node
from remit.runtime.runtime import Runtime
from remit.runtime.workspace import progress_here, subscribe

_FRAMES: Final = 10  # a second
_SHOWN: Final = 12  # runs on the screen at a time
_ENDED: Final = 3  # of those, how many may have ended
_KEPT: Final = 100  # runs in memory before those that have ended are forgotten
_NOTICES: Final = 5  # open breakers below the trees
_SPEAKERS: Final = 3  # agents whose text is shown next to the answer
_SAID: Final = 20_000  # characters of one answer; more fit on no screen
_LEAST: Final = 3  # least number of lines for the text


class _Speech(NamedTuple):
    """The text of an agent so far."""

    agent: str
    text: str


class Words:
    """The streamed text of a run's models: the one that answers the person in full, the last line of the others.

    The text of an interrupted try is dropped when the next one begins.
    """

    def __init__(self) -> None:
        self._run = ""
        self._speeches: dict[str, _Speech] = {}
        self._over = False

    def hear(self, one: Event | TextChunk) -> None:
        """Add a piece of streamed text, or react to an event. The first event tells which run it is. A failed request,
        or an answer of a subtask, removes the text of its task; a wait for a model replaces it."""
        if isinstance(one, TextChunk):
            before = "" if one.begins or one.task not in self._speeches else self._speeches[one.task].text
            self._speeches[one.task] = _Speech(one.agent, (before + one.text)[-_SAID:])
            return
        self._run = self._run or one.run
        if one.kind == "model.failed" or (one.kind == "model.answered" and one.task != self._run):
            self._speeches.pop(one.task, None)
        elif one.kind == "model.waiting":
            self._speeches[one.task] = _Speech(one.agent, f"{one.agent}{detail(one)}")

    def end(self) -> None:
        """Show nothing more: other code prints the final result."""
        self._over = True

    @property
    def answer(self) -> str:
        """The answer to the person so far."""
        speech = self._speeches.get(self._run)
        return "" if speech is None or self._over else block(speech.text).strip()

    def others(self) -> list[tuple[str, str]]:
        """Return up to three other speakers, and their text so far on one line."""
        found = [(task, speech) for task, speech in tuple(self._speeches.items()) if speech.text and not self._over]
        return [(one.agent, " ".join(one.text.split())) for task, one in found if task != self._run][:_SPEAKERS]


class Spoken:
    """A picture with the text below it; the end of the text is always visible."""

    def __init__(self, above: RenderableType | None, words: Words) -> None:
        self._above = above
        self._words = words

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        below = self._lines(console, options)
        if not below:
            yield self._above or Text()
            return
        above = [] if self._above is None else [*console.render_lines(self._above, options, pad=False), []]
        room = max(options.size.height - 1, 2 * _LEAST)  # the last line is for the cursor
        below = below[-max(room - len(above), _LEAST) :]
        if len(above) + len(below) > room:
            above = [*above[: room - len(below) - 2], [Segment("…")], []]
        for line in (*above, *below):
            yield from line
            yield Segment.line()

    def _lines(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        width = options.max_width
        texts = [_line(agent, said, width) for agent, said in self._words.others()]
        if answer := self._words.answer:
            texts.append(Text(answer, overflow="fold"))
        return console.render_lines(Group(*texts), options, pad=False) if texts else []


def _line(agent: str, said: str, width: int) -> Text:
    """Return a line such as: coder … and that is what the module does."""
    name = block(agent)
    return Text.assemble((name, "bold"), "  ", (_tail(block(said), width - cell_len(name) - 3), "dim"), no_wrap=True)


def _tail(text: str, cells: int) -> str:
    """Return the end of a text that fits into so many cells of a terminal."""
    if cell_len(text) <= cells:
        return text
    kept = text[-max(cells, 1) :]
    while kept and cell_len(kept) > cells - 2:
        kept = kept[1:]
    return f"… {kept.partition(' ')[2] or kept}"  # start at a whole word


class Drawable(Protocol):
    """An object that can be drawn repeatedly."""

    def picture(self) -> RenderableType:
        """Return the present state as something that rich can print."""
        ...


class Talking:
    """A picture of the models' text alone, without a tree, for a chat. Until the answer begins, it shows that the agent
    is at work."""

    def __init__(self, agent: str, words: Words) -> None:
        self._idle = Text(f"{agent} is at work …", "dim")
        self._words = words

    def picture(self) -> RenderableType:
        return Spoken(None if self._words.answer else self._idle, self._words)


class Screen:
    """The trees of some runs as they grow, and open breakers.

    With a `task`, only its part of the tree; with `words`, only the first run that starts, and its models' text.
    """

    def __init__(self, task: str = "", *, words: Words | None = None, idle: str = "nothing is open") -> None:
        self._task = task
        self._words = words
        self._idle = idle
        self._trees: dict[str, Growing] = {}
        self._notices: list[Event] = []
        self._clock = SystemClock()
        self.progress: Callable[[], Mapping[str, Progress]] = dict  # the latest, by task; called for each picture

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == "breaker.set":
                others = [one for one in self._notices if one.agent != event.agent]
                self._notices = [*others, event][-_NOTICES:] if _opens(event) else others
            if event.run and (event.run in self._trees or not (self._words and self._trees)):
                self._trees.setdefault(event.run, Growing()).add(event)
        if len(self._trees) > _KEPT:
            self._forget()

    def picture(self) -> RenderableType:
        now = self._clock.now()
        roots = self.roots()
        found = self.progress()
        for node in (node for root in roots for node in root.walk() if node.state not in TERMINAL):
            node.progress = str(found.get(node.id, ""))
        if not roots:
            return Text(self._idle, "dim")
        parts: list[RenderableType] = [tree_view(root, now) for root in roots[:_SHOWN]]
        if len(roots) > _SHOWN:
            parts.append(Text(f"… and {len(roots) - _SHOWN} more runs", "dim"))
        whole = Group(*parts, *(_notice(event) for event in self._notices))
        return whole if self._words is None else Spoken(whole, self._words)

    def roots(self) -> list[Node]:
        """Return the roots of the trees: up to three runs that ended last, then the open ones. If the screen has a
        task, return its node instead of the root."""
        roots = [tree.root for tree in tuple(self._trees.values()) if tree.root is not None]
        if self._task:
            roots = [node for root in roots for node in root.walk() if node.id == self._task]
        open_ = [_is_open(root) for root in roots]
        ended = [root for root, still in zip(roots, open_, strict=True) if not still]
        return ended[-_ENDED:] + [root for root, still in zip(roots, open_, strict=True) if still]

    def shows(self, event: Event) -> bool:
        """Whether a line is printed for the event. If the screen has a task, only events of its part of the tree have
        one. Of a breaker, only the event that opens it has one."""
        if event.kind == "breaker.set":
            return _opens(event)
        return not self._task or any(node.id == event.task for root in self.roots() for node in root.walk())

    def _forget(self) -> None:
        """Drop ended runs, so that watching for days does not fill the memory."""
        over = [run for run, tree in self._trees.items() if tree.root is None or not _is_open(tree.root)]
        self._trees = {run: tree for run, tree in self._trees.items() if run not in over[:-_ENDED]}


def _is_open(root: Node) -> bool:
    return any(node.state not in TERMINAL for node in root.walk())


def _opens(event: Event) -> bool:
    return read(event, BreakerSet)["state"] == "open"


def _notice(event: Event) -> Text:
    """Return a line such as: breaker coder: open after 3 failures: no disk."""
    return Text.assemble(("breaker ", "dim"), (event.agent, "bold"), (detail(event), "yellow"))


@contextmanager
def drawn(picture: Callable[[], RenderableType], console: Console, *, transient: bool) -> Generator[None]:
    """Draw a picture in a terminal while the body runs. Everything else is printed above it."""
    live = Live(
        get_renderable=picture,
        console=console,
        refresh_per_second=_FRAMES,
        transient=transient,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    # rich has no other way to print between two frames.
    frame = live._lock  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    with above(console, frame), live:
        yield


class Drawing:
    """Draws a picture while the body runs, if there is a terminal. It can be paused, for a person to type. A
    `transient` drawing leaves nothing behind."""

    def __init__(self, shown: Drawable, console: Console | None, *, transient: bool = False) -> None:
        self._shown = shown
        self._console = console if console is not None and console.is_terminal else None
        self._transient = transient
        self._drawn = ExitStack()
        self._draws = False
        self._over = False

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._stop()

    def _start(self) -> None:
        if self._console is not None and not self._over:
            self._drawn.enter_context(drawn(self._shown.picture, self._console, transient=self._transient))
            self._draws = True

    def _stop(self) -> None:
        self._drawn.close()
        self._draws = False

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop drawing while the body runs; afterwards draw again below the typed text, unless the drawing has
        ended."""
        drawing = self._draws
        self._stop()
        try:
            yield
        finally:
            if drawing:
                self._start()


def on_screen(screen: Screen, console: Console | None) -> Drawing:
    """Return a drawing of the screen, which draws while its body runs if the console is a terminal."""
    return Drawing(screen, console)


def show(screen: Screen, console: Console, events: Sequence[Event]) -> None:
    """Add new events to the screen; without a drawing, print a line for each."""
    screen.add(events)
    if not console.is_terminal:
        for event in events:
            if screen.shows(event):
                console.print(plain_line(event), markup=False)


@contextmanager
def watching(runtime: Runtime, console: Console | None, words: Words | None = None) -> Generator[Drawing]:
    """Show the first run that starts in this runtime while the body runs, and yield the drawing. If `console` is None,
    show nothing. The models' text does not stay on the screen."""
    words = words or Words()
    screen = Screen(words=words, idle="starting …")
    if console is None:
        yield on_screen(screen, None)
        return
    stop = subscribe(runtime.workspace, lambda events: show(screen, console, events))
    screen.progress = partial(progress_here, runtime.workspace)
    try:
        with on_screen(screen, console) as drawing:
            try:
                yield drawing
            finally:
                words.end()
    finally:
        stop()


@contextmanager
def starting(console: Console | None) -> Generator[None]:
    """Show that something is coming while a team is loaded, which may take a second or two; nothing stays."""
    if console is None or not console.is_terminal:
        yield
        return
    with drawn(lambda: Text("starting …", "dim"), console, transient=True):
        yield
