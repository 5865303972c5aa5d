"""`remit check`: all problems of a team's file, before anything runs."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.loading import NOT_IMPORTED
from remit.cli.options import AsJson, aside, emit, out, team_file
from remit.config.reading import LISTED, Problem, more_than
from remit.config.schema import schema as schema_of
from remit.config.teams import check_team
from remit.config.trusting import is_trusted
from remit.errors import BadInput
from remit.report.figures import count

BAD_INPUT = 2


def check(
    file: Path | None = None, *, schema: Annotated[bool, Parameter(negative="")] = False, json: AsJson = False
) -> int:
    """Validate a team file without running the team. Print each problem with its line number.

    If the folder is trusted, the command imports modules and asks MCP servers for their tools; see `remit trust`. An
    API key that is missing on this machine is only a warning. Any other problem gives exit code 2.

    Parameters
    ----------
    file
        The team file. [default: that of REMIT_TEAM, else remit.toml]
    schema
        Print the JSON Schema of team files, for editors, and check nothing.
    json
        Print the problems as JSON.
    """
    if schema:
        emit(schema_of())
        return 0
    file = file or team_file()
    trusted = _trusted(file)
    team, problems = check_team(file, trusted=trusted)
    if json:
        emit([_data(one) for one in problems])
    else:
        for one in problems[:LISTED]:
            word = ("warning: ", "yellow") if one.warning else ""
            out().print(Text.assemble((f"{one.file}:{one.line}: ", "bold"), word, one.text))
        for line in more_than(problems):
            out().print(Text(f"{line}: `remit check --json` lists them all"))
        if team is not None:
            agents = count(len(team.runtime.cards()), "agent")
            rest = "no problems" if not problems else "no errors, only warnings for this machine"
            out().print(Text(f"{file}: {agents}, {rest}", "dim"))
        if team is not None and not trusted:
            aside().print(Text(f"{NOT_IMPORTED}; to check those too: `remit trust`", "yellow"))
    return 0 if team is not None else BAD_INPUT


def _trusted(file: Path) -> bool:
    try:
        return is_trusted(file)
    except BadInput:  # the problems of the file are listed anyway
        return False


def _data(one: Problem) -> dict[str, object]:
    return {**one._asdict(), "warning": one.warning}
