"""Odd files: what is no file or too much for one is a sentence, soon; and pictures go where they were meant to."""

import os
from pathlib import Path

import pytest

from commands import command as remit
from remit import Card, Runtime, run
from remit.cli.options import write_beside
from remit.config.teams import check_team
from remit.errors import BadInput


@pytest.mark.rule("file.odd")
@pytest.mark.parametrize("words", [("check",), ("runs",), ("run", "x")], ids=" ".join)
def test_a_pipe_is_not_waited_for(words: tuple[str, ...], tmp_path: Path):
    os.mkfifo(tmp_path / "remit.toml")
    done = remit(tmp_path, *words)
    assert (done.returncode, "remit.toml cannot be read: it is a pipe and not a file" in done.stderr) == (2, True)


@pytest.mark.rule("file.odd")
@pytest.mark.parametrize(("place", "kind"), [("/dev/zero", "a device"), (".", "a folder")])
def test_what_is_no_file_is_not_read(place: str, kind: str):
    with pytest.raises(BadInput, match=f"cannot be read: it is {kind} and not a file"):
        check_team(Path(place))


@pytest.mark.rule("file.odd")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x" * 1_000_001, "has more than 1,000,000 bytes"),
        ("".join(f"k{number} = 1\n" for number in range(10_001)), "has more than 10,000 settings"),
        (f"asks = [{','.join(['1'] * 10_001)}]", "has more than 10,000 settings"),
        (f"{'a.' * 100_000}b = 1\n", "has a name of more than 200 parts"),
        (f"x = {{ {'a . ' * 100_000}b = 1 }}\n", "has a name of more than 200 parts"),
        (f"{'a.' * 60}b = 1\n", "is nested too deeply"),
        (f"x = {'[' * 100_000}", "is nested too deeply"),
    ],
    ids=["bytes", "settings", "items", "parts", "inline parts", "tables", "lists"],
)
def test_more_than_anyone_writes_is_told_before_it_is_read(text: str, sentence: str, tmp_path: Path):
    file = tmp_path / "remit.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=sentence):
        check_team(file)


@pytest.mark.rule("flow.output")
def test_a_picture_is_written_by_the_umask_and_through_no_link(tmp_path: Path):
    team = Runtime(tmp_path / "remit.db")

    async def desk(turn: object) -> str:
        return "done"

    team.add(Card("desk"), desk)
    with team:
        run(team, "desk", "x")
    other, picture = tmp_path / "other", tmp_path / "picture.svg"
    other.write_text("mine")
    picture.symlink_to(other)
    assert remit(tmp_path, "flow", "--format", "svg", "-o", "picture.svg").returncode == 0
    before = os.umask(0o027)
    try:
        write_beside(tmp_path / "another", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "another").stat().st_mode & 0o777 == 0o640
    assert other.read_text() == "mine"
    assert picture.read_text().startswith("<svg")
    assert not picture.is_symlink()
    for bad, sentence in (("no/where.svg", "cannot be written"), (".", "is a folder")):
        done = remit(tmp_path, "flow", "-o", bad)
        assert (done.returncode, sentence in done.stderr) == (2, True)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
