-- The queue: due tasks, running tasks, and processes.

-- name: running
-- A task that a dead process held stops counting at its timeout.
SELECT count(*) FROM task
WHERE workspace = :workspace AND holder = :holder AND state = 'running' AND until > :now;

-- name: working
-- Lines of work: a queued task counts as running while it or one of its delegated subtasks runs. Only subtasks of
-- waiting tasks are read.
WITH RECURSIVE tree (root, id, state) AS (
    SELECT id, id, state FROM task
    WHERE workspace = :workspace AND asked_how <> 'delegate' AND (state = 'running' OR state = 'waiting')
    UNION ALL
    SELECT tree.root, c.id, c.state FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> ''
    WHERE c.workspace = :workspace AND tree.state <> 'running' AND c.ended IS NULL AND c.asked_how = 'delegate'
)
SELECT count(DISTINCT root) FROM tree WHERE state = 'running';

-- name: resuming
-- The task has stopped waiting and needs a slot. It keeps its worker, because its state is in the memory of that
-- process.
SELECT count(*) FROM task
WHERE workspace = :workspace AND state = 'pending' AND worker <> '' AND (:holder = '*' OR holder = :holder);

-- name: queues
-- The agents with pending tasks. Jumps from agent to agent in the index, so that a long queue is not read.
WITH RECURSIVE queue (holder) AS (
    SELECT min(holder) FROM task WHERE workspace = :workspace AND state = 'pending'
    UNION ALL
    SELECT (SELECT min(t.holder) FROM task t
            WHERE t.workspace = :workspace AND t.state = 'pending' AND t.holder > queue.holder)
    FROM queue WHERE queue.holder IS NOT NULL
)
SELECT holder FROM queue WHERE holder IS NOT NULL;

-- name: open_tasks
-- The open tasks by state, each counted up to a limit, so that a long queue is not read. The order is that of the index
-- of each state.
SELECT 'pending', count(*)
FROM (SELECT 1 FROM task WHERE workspace = :workspace AND state = 'pending' ORDER BY holder LIMIT :limit) AS page
UNION ALL
SELECT 'running', count(*)
FROM (SELECT 1 FROM task WHERE workspace = :workspace AND state = 'running' ORDER BY holder LIMIT :limit) AS page
UNION ALL
SELECT 'waiting', count(*)
FROM (SELECT 1 FROM task WHERE workspace = :workspace AND state = 'waiting' ORDER BY worker LIMIT :limit) AS page
UNION ALL
SELECT 'cancelling', count(*)
FROM (SELECT 1 FROM task WHERE workspace = :workspace AND state = 'cancelling' ORDER BY worker LIMIT :limit) AS page;

-- name: has_due
-- Whether an agent's queue has a task that could be claimed. Runs at every submission, so it reads no rows.
SELECT EXISTS (SELECT 1 FROM task
               WHERE workspace = :workspace AND state = 'pending' AND holder = :holder AND ready_at = 0 AND worker = '')
    OR EXISTS (SELECT 1 FROM task
               WHERE workspace = :workspace AND state = 'pending' AND holder = :holder
                 AND ready_at >= 1 AND ready_at <= :now AND worker = '');

-- name: due
-- Each due task with its first event, if that exists: the caller claims it next, and ends a task that cannot be read.
-- Tasks with more losses than given are left out. Tasks that are due at once come by priority, then in the order of
-- submission. Of retries and delayed tasks, those that are due for the longest are read, because sorting all of them
-- would take longer the more there are.
SELECT @t.task, @e.event FROM (
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND holder = :holder AND ready_at = 0
                     AND (worker = '' OR worker = :worker) AND losses <= :losses
                   ORDER BY priority DESC, began LIMIT :limit) AS fresh
    UNION ALL
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND holder = :holder
                     AND ready_at >= 1 AND ready_at <= :now
                     AND (worker = '' OR worker = :worker) AND losses <= :losses
                   ORDER BY ready_at, priority DESC, began LIMIT 256) AS again
    ORDER BY priority DESC, began LIMIT :limit
) AS t LEFT JOIN event e ON e.workspace = :workspace AND e.seq = t.began
ORDER BY t.priority DESC, t.began;

-- name: front
-- The same over all queues.
SELECT @t.task, @e.event FROM (
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND ready_at = 0 AND worker = ''
                   ORDER BY priority DESC, began LIMIT :limit) AS fresh
    UNION ALL
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND ready_at > 0 AND ready_at <= :now
                     AND worker = ''
                   ORDER BY ready_at LIMIT 256) AS again
    ORDER BY priority DESC, began LIMIT :limit
) AS t LEFT JOIN event e ON e.workspace = :workspace AND e.seq = t.began
ORDER BY t.priority DESC, t.began;

-- name: next_due
SELECT min(ready_at) FROM task WHERE workspace = :workspace AND state = 'pending' AND ready_at > 0 AND ready_at > :now;

-- name: late
SELECT @task
FROM task WHERE workspace = :workspace AND state = 'pending' AND until <= :now ORDER BY until LIMIT :limit;

-- name: tasks_of_worker
-- Each state has its own index, so only open tasks are read.
SELECT @task
FROM task
WHERE workspace = :workspace AND worker = :worker
  AND (state = 'running' OR state = 'waiting' OR state = 'cancelling' OR (state = 'pending' AND worker <> ''))
ORDER BY began;

-- name: cancelling
-- The tasks that this worker must stop.
SELECT id FROM task WHERE workspace = :workspace AND worker = :worker AND state = 'cancelling';

-- name: worker_beat
-- A heartbeat is not history, so it is no event.
INSERT INTO worker (workspace, id, home, count, hands, progress, seen_at, agents)
VALUES (:workspace, :worker, :home, :count, :hands, :progress, :seen_at, :agents)
ON CONFLICT (workspace, id) DO UPDATE
SET home = excluded.home, count = excluded.count, hands = excluded.hands, progress = excluded.progress,
    seen_at = excluded.seen_at, agents = excluded.agents;

-- name: worker_leave
DELETE FROM worker WHERE workspace = :workspace AND id = :worker;

-- name: workers
SELECT id, home, count, hands, progress, seen_at, agents FROM worker WHERE workspace = :workspace ORDER BY id;

-- name: unseen
-- Workers that hold tasks and have no heartbeat. Each state has its own index, so only open tasks are read.
SELECT DISTINCT t.worker FROM task t
WHERE t.workspace = :workspace AND t.worker <> ''
  AND (t.state = 'running' OR t.state = 'waiting' OR t.state = 'cancelling' OR (t.state = 'pending' AND t.worker <> ''))
  AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.workspace = t.workspace AND w.id = t.worker);
