"""Names of spans, attributes and metrics, for OpenTelemetry and Prometheus.

The `gen_ai` names are those of the semantic conventions of OpenTelemetry for generative AI; the others are remit's own.
"""

import re
from typing import Final, NamedTuple

SCOPE: Final = "remit"  # the instrumentation scope

# -- attributes of spans ---------------------------------------------------------------------------------------------

OPERATION: Final = "gen_ai.operation.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITTEN: Final = "gen_ai.usage.cache_creation.input_tokens"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
ERROR: Final = "error.type"
STATUS: Final = "http.response.status_code"

WORKSPACE: Final = "remit.workspace"
RUN: Final = "remit.run"
TASK: Final = "remit.task"
STATE: Final = "remit.state"
ATTEMPT: Final = "remit.attempt"
ATTEMPTS: Final = "remit.attempts"
WORKER: Final = "remit.worker"
ASKER: Final = "remit.asker"
ASKED_HOW: Final = "remit.asked_how"  # delegate, submit, spawn or async
HOLDER: Final = "remit.holder"  # the agent that ended the task, if it was handed over
TO: Final = "remit.to"
RULE: Final = "remit.rule"
COST: Final = "remit.cost"  # in millionths of a dollar
INCOMPLETE: Final = "remit.incomplete"  # the task began in another process, and its first events could not be read

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"

# -- metrics ---------------------------------------------------------------------------------------------------------

OTHER: Final = "other"  # stands for every name that is not in the directory of this process
SECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0)  # bounds of buckets


class Metric(NamedTuple):
    """A metric: its name, the names of its labels, its unit and its description. One with the unit "s" is a
    histogram, any other a counter."""

    name: str
    labels: tuple[str, ...]
    unit: str
    about: str

    @property
    def is_histogram(self) -> bool:
        return self.unit == "s"


EVENTS: Final = Metric("remit.events", ("kind",), "{event}", "Events that this process committed, by kind.")
BEGUN: Final = Metric("remit.tasks.begun", ("agent",), "{task}", "Tasks that this process started or queued.")
ENDED: Final = Metric("remit.tasks.ended", ("agent", "state"), "{task}", "Tasks that ended here, by their state.")
TASK_TIME: Final = Metric("remit.task.duration", ("agent", "state"), "s", "Time from a task's first event to its end.")
QUEUE_TIME: Final = Metric("remit.queue.duration", ("agent",), "s", "Time from submission to the first attempt.")
REFUSED: Final = Metric("remit.refusals", ("agent", "rule"), "{refusal}", "Refused calls, by asking agent and rule.")
MODEL_CALLS: Final = Metric("remit.model.requests", ("agent", "state"), "{request}", "Model requests, by outcome.")
MODEL_TIME: Final = Metric("remit.model.duration", ("agent",), "s", "Time of a model request that was answered.")
TOKENS: Final = Metric("remit.tokens", ("agent", "kind"), "{token}", "Tokens of models: input and output.")
SPENT: Final = Metric("remit.credits", ("agent",), "{microdollar}", "Charged money, in millionths of a dollar.")
TOOL_CALLS: Final = Metric("remit.tool.calls", ("agent", "state"), "{call}", "Tool calls, by outcome.")
TOOL_TIME: Final = Metric("remit.tool.duration", ("agent",), "s", "Time of a tool call.")
DROPPED: Final = Metric(
    "remit.telemetry.dropped", (), "{fact}", "Facts that were dropped because the exporter is slow."
)

METRICS: Final = (
    *(EVENTS, BEGUN, ENDED, TASK_TIME, QUEUE_TIME, REFUSED, MODEL_CALLS, MODEL_TIME, TOKENS, SPENT),
    *(TOOL_CALLS, TOOL_TIME, DROPPED),
)

# -- values ----------------------------------------------------------------------------------------------------------

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/@+-]{0,79}")


def safe_name(text: object) -> str:
    """Return a name that others chose, such as that of a tool or a model, if it looks like one; else "other". A model
    may write any text where a name belongs."""
    return text if isinstance(text, str) and _NAME.fullmatch(text) else OTHER
