"""Files of programs: a private folder with what the agent was given, and room for what the program saves."""

import json
import os
from pathlib import Path

import pytest

from adapters.processes import python, written
from engine.helping import PATIENCE, sound
from remit import Artifact, Card, Command, Failed, Runtime, Turn
from remit.adapters.process import program
from remit.config.teams import team
from remit.errors import BadInput
from remit.settings import Policy

pytestmark = pytest.mark.anyio

SHOW = """
import json, os, pathlib, sys
root = pathlib.Path(os.environ["REMIT_FILES"])
print(json.dumps({
    "in": {path.name: path.read_text() for path in (root / "in").iterdir()},
    "index": json.loads((root / "index.json").read_text()),
    "modes": [oct(path.stat().st_mode & 0o777) for path in (root, root / "in", root / "out")],
}))
"""
SAVE = """
import os, pathlib, sys
out = pathlib.Path(os.environ["REMIT_FILES"]) / "out"
for word in sys.stdin.read().split():
    (out / f"{word}.txt").write_text(word)
"""


def names_in(folder: Path) -> list[str]:
    """The folders of programs that there are."""
    return sorted(path.name for path in folder.glob("remit-files-*"))


@pytest.mark.rule("artifact.programs", "artifact.seen")
async def test_a_program_reads_the_files_that_its_agent_was_given_and_no_others(tmp_path: Path):
    async with Runtime() as rt:
        rt.add(Card("shows"), program(python(SHOW), files=tmp_path))
        hidden: list[str] = []

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            kept = await turn.artifacts.save(b"kept", "kept.txt")
            hidden.append(kept.digest)
            first, second = await turn.artifacts.save(b"a", "report.txt"), await turn.artifacts.save(b"b", "report.txt")
            return await turn.delegate("shows", f"compare {first} and {second}, and also {second.digest}")

        @rt.agent(asks="*")
        async def front(turn: Turn) -> Command:
            return Command("shows", {"file": await turn.artifacts.save(b"handed", "handed.txt")})

        told = json.loads(await rt.run("lead", "go"))
        assert sorted(told["in"]) == ["2-report.txt", "report.txt"]
        assert sorted(told["in"].values()) == ["a", "b"]
        assert {one["file"] for one in told["index"]} == {"in/report.txt", "in/2-report.txt"}
        assert told["modes"] == ["0o700"] * 3
        assert json.loads(await rt.run("front", "go"))["in"] == {"handed.txt": "handed"}
        assert json.loads(await rt.run("shows", f"mentions sha256:{'0' * 64}"))["index"] == []
        other = await rt.run("lead", "go")
        assert hidden[0] not in other
        assert names_in(tmp_path) == []
        await sound(rt)


@pytest.mark.rule("artifact.programs", "artifact.trust")
async def test_what_a_program_leaves_is_saved_and_is_its_result_or_follows_its_text(tmp_path: Path):
    async with Runtime() as rt:
        rt.add(Card("saves"), program(python(SAVE), files=tmp_path))
        rt.add(Card("tells"), program(python(f"{SAVE}\nprint('done')"), files=tmp_path))
        one = await rt.run("saves", "yes", returns=Artifact)
        opened = await rt.workspace.artifacts.open(one)
        assert (one.name, await opened.text(), opened.trust) == ("yes.txt", "yes", "untrusted")
        both = await rt.run("saves", "a b", returns=list[Artifact])
        assert [artifact.name for artifact in both] == ["a.txt", "b.txt"]
        assert await rt.run("saves", " ") == ""

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            told = await turn.delegate("tells", "x")
            assert told.startswith("done\n\nfile: {")
            return await (await turn.artifacts.open(json.loads(told.partition("file: ")[2]))).text()

        assert await rt.run("lead", "go") == "x"
        assert names_in(tmp_path) == []
        await sound(rt)


@pytest.mark.rule("artifact.programs", "artifact.quota")
async def test_links_folders_too_much_and_a_program_that_fails_save_nothing(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    link = f"{SAVE}\n(out / 'link').symlink_to({str(secret)!r})"
    async with Runtime(policy=Policy(run_artifact_bytes=10)) as rt:
        rt.add(Card("links"), program(python(link), files=tmp_path))
        rt.add(Card("folders"), program(python(f"{SAVE}\n(out / 'x').mkdir()"), files=tmp_path))
        rt.add(Card("fails"), program(python(f"{SAVE}\nsys.exit(3)"), files=tmp_path))
        rt.add(Card("saves"), program(python(SAVE), files=tmp_path))
        for name, why in (
            ("links", "left 'link' in its out folder, which is no plain file"),
            ("folders", "left 'x' in its out folder, which is no plain file"),
            ("fails", "ended with exit code 3"),
        ):
            with pytest.raises(Failed, match=why):
                await rt.run(name, "a")
        with pytest.raises(Failed, match="cannot save that much"):
            await rt.run("saves", "a-word-of-some-length")
        assert await rt.workspace.artifacts.list() == []
        assert names_in(tmp_path) == []


async def test_files_is_a_yes_or_a_folder():
    with pytest.raises(BadInput, match=r"files is True, or a pathlib.Path of the folder for its files, not 'here'"):
        program(["cat"], files="here")  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("artifact.programs")
async def test_the_folder_goes_with_a_cancelled_call_and_with_a_process_that_was_killed(tmp_path: Path):
    left, fresh = tmp_path / "remit-files-dead", tmp_path / "remit-files-new"
    for path in (left, fresh):
        (path / "in").mkdir(parents=True)
    os.utime(left, (1, 1))
    started = tmp_path / "started"
    code = f"import time, pathlib; pathlib.Path({str(started)!r}).write_text('x'); time.sleep(100)"
    async with Runtime() as rt:
        rt.add(Card("waits"), program(python(code), files=tmp_path, grace=0.1))
        task = await rt.submit("waits", "x")
        await written(started)
        assert left.name not in names_in(tmp_path)
        assert len(names_in(tmp_path)) == 2  # its own, and one whose process may still lock it
        await task.cancel()
        await task.wait(PATIENCE)
        assert names_in(tmp_path) == [fresh.name]


@pytest.mark.rule("artifact.programs")
async def test_a_team_file_gives_files_to_a_program(tmp_path: Path):
    file = tmp_path / "remit.toml"
    file.write_text('[agents.it]\nprogram = ["sh", "-c", "echo yes > $REMIT_FILES/out/a.txt"]\nfiles = true\n')
    async with team(file).runtime as rt:
        assert (await rt.run("it", "go", returns=Artifact)).name == "a.txt"
