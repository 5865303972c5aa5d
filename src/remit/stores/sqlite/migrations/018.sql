-- The queue. What is due at once has `ready_at` 0 and is nearly all of it; the rest is tried again later. So each queue
-- begins with what is due, and what is due later stands behind it by its time.
DROP INDEX task_pending;
CREATE INDEX task_pending ON task (workspace, holder, ready_at, began) WHERE state = 'pending';
-- All queues together, so that a claim need not look at each of them to find who is first.
CREATE INDEX task_first ON task (workspace, began) WHERE state = 'pending' AND ready_at = 0 AND worker = '';
CREATE INDEX task_later ON task (workspace, ready_at) WHERE state = 'pending' AND ready_at > 0;
-- Every worker looks each second for what is late. The index costs a queued task about a microsecond, as it grows at its
-- end; without it each look reads all that is pending.
CREATE INDEX task_until ON task (workspace, until) WHERE state = 'pending';

-- What the planner should expect, as for the other indexes.
DELETE FROM sqlite_stat1 WHERE idx = 'task_pending';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('task', 'task_pending', '1000 1000 100 50 1'),
    ('task', 'task_first', '1000 1000 1'),
    ('task', 'task_later', '100 100 1'),
    ('task', 'task_until', '1000 1000 1');
ANALYZE sqlite_schema;
