"""Run as a program: scripts in processes that are forked from this one, which has imported what they need.

Each line of the input is JSON: `[script, arguments, environment, folder]`. The script is run in the folder as a program
would be, with what it prints in `stdout` and `stderr` there, and told are its process id, and at its end how it ended.
"""

import json
import os
import runpy
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any

PRELOADED = (
    *("agents", "langchain.agents", "langchain_openai", "pydantic_ai.models.openai", "genai_prices.data"),
    *("remit.adapters.langgraph", "remit.adapters.openai_agents", "remit.adapters.pydantic_ai", "remit.testing.models"),
    *("remit.adapters.prices", "remit.report.flow", "remit.runtime.runtime"),
    *("openai.lib.streaming.responses", "openai.resources.responses.responses", "openai.resources.chat.completions"),
)


def live(script: str, arguments: list[str], environment: dict[str, str], folder: str) -> None:
    os.chdir(folder)
    os.environ.update(environment)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.argv = [script, *arguments]
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ResourceWarning)  # clients of the frameworks are not closed by them
    runpy.run_path(script, run_name="__main__")


def main() -> None:
    for name in PRELOADED:
        import_module(name)
    for line in sys.stdin:
        asked: Any = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                live(*asked)
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
