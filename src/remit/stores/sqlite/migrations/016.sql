-- What failed, died or was cancelled: people ask for it most, and it is little among all that completed.
CREATE INDEX task_gone ON task (workspace, state, began)
    WHERE state = 'failed' OR state = 'cancelled' OR state = 'dead';
-- What the planner should expect: a third of them in each state, and every one began at another event.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('task', 'task_gone', '100000 100000 30000 1');
ANALYZE sqlite_schema;
