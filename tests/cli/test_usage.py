"""Commands that are written in a wrong way: the sentence says how to write them."""

import pytest
from cyclopts import CycloptsError

from remit.cli.commands import app
from remit.cli.main import main
from remit.cli.usage import usage_error

HELP = "`remit --help` lists its commands"


def wrong(words: str) -> str:
    with pytest.raises(CycloptsError) as caught:
        app(words.split(), exit_on_error=False, print_error=False)
    return usage_error(caught.value)


@pytest.mark.rule("screen.usage")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("work", f"remit has no command 'work'; did you mean `remit worker`? {HELP}"),
        ("answr", f"remit has no command 'answr'; did you mean `remit answer`? {HELP}"),
        ("tree", f"remit has no command 'tree'; did you mean `remit show`? {HELP}"),
        ("diagram", f"remit has no command 'diagram'; did you mean `remit flow`? {HELP}"),
        ("spend", f"remit has no command 'spend'; did you mean `remit money spend`? {HELP}"),
        ("xyzzy", f"remit has no command 'xyzzy'; {HELP}"),
        (
            "keys list",
            "remit keys has no command 'list'; did you mean `remit keys ls`? `remit keys --help` lists its commands",
        ),
    ],
)
def test_an_unknown_command_is_looked_for_in_names_and_in_what_commands_do(words: str, sentence: str):
    assert wrong(words) == sentence


@pytest.mark.rule("screen.usage")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("answer", "remit answer needs QUESTION; `remit answer --help` shows how to write it"),
        ("breaker trip ferry", "remit breaker trip needs --why; `remit breaker trip --help` shows how to write it"),
        ("show --store", 'Command "show" parameter --store requires an argument.'),
        ("runs extra", "remit runs does not take 'extra'; `remit runs --help` shows how to write it"),
        ("flow --format png", "--format is one of 'text', 'mermaid', 'svg', not 'png'"),
        (
            "money spend --by colour",
            (
                "--by is one of 'day', 'agent', 'model', 'session', 'person', 'run', 'day,agent,model', 'day,agent', "
                "'day,model', 'agent,model', not 'colour'"
            ),
        ),
        ("runs --limit many", 'Invalid value for --limit: unable to convert "many" into int.'),
    ],
)
def test_wrong_arguments_are_named_as_the_help_names_them(words: str, sentence: str):
    assert wrong(words) == sentence


def test_the_help_of_a_command_is_its_whole_docstring(capsys: pytest.CaptureFixture[str]):
    for flag in app.help_flags:
        with pytest.raises(SystemExit) as ended:
            main(["chat", flag])
        text = " ".join(capsys.readouterr().out.split())
        assert ended.value.code == 0
        assert "Chat with an agent in one session. Ctrl-D or /quit ends the chat;" in text
        assert "/undo takes back the last message" in text


def test_lists_of_commands_have_one_sentence_for_each(capsys: pytest.CaptureFixture[str]):
    for words in (["chat", "--help"], ["--help"]):
        with pytest.raises(SystemExit):
            main(words)
    text = " ".join(capsys.readouterr().out.rpartition("Run, watch and operate")[2].split())
    assert "chat Chat with an agent in one session. │" in text


@pytest.mark.parametrize("command", ["init", "trust", "demo", "ps"])
def test_help_shows_a_default_once(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "250")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(line.count("[default") for line in lines) == 1
