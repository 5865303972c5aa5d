-- Priorities: tasks that are due at once stand in the queue by priority, then in the order of their requests. All tasks
-- without one have priority 0, so the order of a queue that uses none stays the same, and no index is added.
ALTER TABLE task ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
DROP INDEX task_pending;
CREATE INDEX task_pending ON task (workspace, holder, ready_at, priority DESC, began) WHERE state = 'pending';
DROP INDEX task_first;
CREATE INDEX task_first ON task (workspace, priority DESC, began)
WHERE state = 'pending' AND ready_at = 0 AND worker = '';

DELETE FROM sqlite_stat1 WHERE idx IN ('task_pending', 'task_first');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('task', 'task_pending', '1000 1000 100 50 50 1'),
    ('task', 'task_first', '1000 1000 500 1');
ANALYZE sqlite_schema;
