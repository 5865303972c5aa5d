-- How often a process died that had the task: what may have killed it is not begun beside others for ever.
ALTER TABLE task ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
