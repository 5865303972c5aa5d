-- The latest progress of a process's tasks, as JSON. It comes with the heartbeat, because it is no history.
ALTER TABLE worker ADD COLUMN progress TEXT NOT NULL DEFAULT '';
