-- The queue. What is due at once has `ready_at` 0 and is nearly all of it; the rest is tried again later. So each queue
-- begins with what is due, and what is due later stands behind it by its time.
DROP INDEX task_pending;
-- Every worker looks each second for what is late; without an index each look reads all that is pending.
CREATE INDEX task_until ON task (workspace, until) WHERE state = 'pending';
CREATE INDEX task_later ON task (workspace, ready_at) WHERE state = 'pending' AND ready_at > 0;
-- All queues together, so that a claim need not look at each of them to find who is first.
CREATE INDEX task_first ON task (workspace, began) WHERE state = 'pending' AND ready_at = 0 AND worker = '';
CREATE INDEX task_pending ON task (workspace, holder, ready_at, began) WHERE state = 'pending';
-- What workers look for each second, of which there is little: without these they would read all tasks.
CREATE INDEX task_cancelling ON task (workspace, worker) WHERE state = 'cancelling';
CREATE INDEX task_waiting ON task (workspace, worker) WHERE state = 'waiting';
