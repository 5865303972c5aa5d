"""Odd files: what is no file or too much for one is a sentence, soon; and pictures go where they were meant to."""

import json
import os
from pathlib import Path
from time import process_time

import pytest

from commands import command as remit
from remit import Card, Runtime, run
from remit.cli.options import write_beside
from remit.config.teams import check_team, team
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


@pytest.mark.rule("file.odd", "input.linear")
@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("[agents.a]\n" + "".join(f"k{number} = 1\n" for number in range(9_990)), "and 9,941 more"),
        ("".join(f"[agents.a{number}]\nmodle = 'x'\n" for number in range(4_990)), "and 9,592 more"),
        ("".join(f"[agents.a{number}]\nmodel = 'test'\nasks = ['b']\n" for number in range(2_490)), "and 2,440 more"),
        ("[agents.a]\nmodel = 'test'\n" + f"tools = {['x'] * 9_900}", ""),
        ("[agents.a]\nmodel = 'test'\n" + f"tools = {[f't{number}' for number in range(9_900)]}", "and 9,850 more"),
    ],
    ids=["settings", "agents", "askers", "one tool", "tools"],
)
def test_ten_thousand_wrong_names_are_told_at_once_and_fifty_of_them_one_by_one(text: str, last: str, tmp_path: Path):
    file = tmp_path / "remit.toml"
    file.write_text(text)
    began = process_time()
    with pytest.raises(BadInput) as told:
        team(file)
    assert process_time() - began < 3  # it was 12 and more, for each of them was compared with all
    *lines, end = str(told.value).splitlines()
    assert (end, len(lines)) == (last, 50) if last else lines == []
    assert len(str(told.value)) < 200_000


@pytest.mark.rule("file.odd")
def test_check_lists_fifty_problems_and_says_how_many_more_there_are(tmp_path: Path):
    (tmp_path / "remit.toml").write_text("[agents.a]\n" + "".join(f"k{number} = 1\n" for number in range(100)))
    done = remit(tmp_path, "check")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == "and 51 more: `remit check --json` lists them all"
    assert len(done.stdout.splitlines()) == 51
    assert len(json.loads(remit(tmp_path, "check", "--json").stdout)) == 101


@pytest.mark.rule("file.odd", "input.linear")
def test_groups_that_stand_for_more_tools_than_anyone_has_are_not_spelled_out(tmp_path: Path):
    file = tmp_path / "remit.toml"
    agents = "".join(f"[agents.a{number}]\nmodel = 'test'\ntools = ['group:big']\n" for number in range(1_000))
    file.write_text(f"[groups]\nbig = {[f't{number}' for number in range(5_000)]}\n{agents}")
    with pytest.raises(BadInput, match="names more than 100,000 tools once its groups are spelled out"):
        check_team(file)


@pytest.mark.rule("flow.output")
def test_a_picture_is_written_by_the_umask_and_through_no_link(tmp_path: Path):
    crew = Runtime(tmp_path / "remit.db")

    async def desk(turn: object) -> str:
        return "done"

    crew.add(Card("desk"), desk)
    with crew:
        run(crew, "desk", "x")
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
