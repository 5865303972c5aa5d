// The state machine of tasks: the same table as in `remit.core.lifecycle`. A test compares the two.

export type TaskState =
  | "pending"
  | "running"
  | "waiting"
  | "cancelling"
  | "completed"
  | "failed"
  | "cancelled"
  | "dead";

type Moves = Readonly<Record<string, TaskState>>;

const ends: Moves = { "task.cancelled": "cancelled", "task.failed": "failed", "task.died": "dead" };

export const TRANSITIONS: Readonly<Record<"" | TaskState, Moves>> = {
  "": { "task.submitted": "pending", "task.started": "running" },
  pending: {
    ...ends,
    "task.claimed": "running",
    "task.resumed": "running",
    "task.retrying": "pending",
    "task.released": "pending",
    "task.lost": "pending",
    "task.parked": "waiting",
    "task.fenced": "running",
    "task.cancelling": "cancelling",
  },
  running: {
    ...ends,
    "task.claimed": "running",
    "task.handed": "running",
    "task.waiting": "waiting",
    "task.retrying": "pending",
    "task.released": "pending",
    "task.lost": "pending",
    "task.parked": "waiting",
    "task.fenced": "running",
    "task.cancelling": "cancelling",
    "task.completed": "completed",
  },
  waiting: {
    ...ends,
    "task.claimed": "running",
    "task.resumed": "running",
    "task.queued": "pending",
    "task.released": "pending",
    "task.lost": "pending",
    "task.parked": "waiting",
    "task.fenced": "running",
    "task.cancelling": "cancelling",
  },
  cancelling: { "task.cancelled": "cancelled" },
  completed: {},
  failed: {},
  cancelled: {},
  dead: {},
};

export const TERMINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "dead"]);
export const isOver = (state: string): boolean => TERMINAL.has(state);
