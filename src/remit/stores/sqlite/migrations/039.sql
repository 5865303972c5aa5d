-- The names of the agents that a worker runs tasks for, as a JSON list; empty for a process that runs no queued tasks.
ALTER TABLE worker ADD COLUMN agents TEXT NOT NULL DEFAULT '';
