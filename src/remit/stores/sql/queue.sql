-- The queue: what is due, who works on what, and which processes there are.

-- name: running
-- One left behind by a dead process stops counting when its time is up.
SELECT count(*) FROM task
WHERE workspace = :workspace AND holder = :holder AND state = 'running' AND until > :now;

-- name: working
-- Lines of work: a task from the queue works as long as it or anything that is delegated below it does. Only what is
-- below one that waits is looked at.
WITH RECURSIVE tree (root, id, state) AS (
    SELECT id, id, state FROM task
    WHERE workspace = :workspace AND asked_how <> 'delegate' AND (state = 'running' OR state = 'waiting')
    UNION ALL
    SELECT tree.root, c.id, c.state FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> ''
    WHERE c.workspace = :workspace AND tree.state <> 'running' AND c.ended IS NULL AND c.asked_how = 'delegate'
)
SELECT count(DISTINCT root) FROM tree WHERE state = 'running';

-- name: resuming
-- Back from waiting, and waiting for a slot: it keeps its worker, because its work is in that process's memory.
SELECT count(*) FROM task
WHERE workspace = :workspace AND state = 'pending' AND worker <> '' AND (:holder = '*' OR holder = :holder);

-- name: queues
-- The agents that have something pending; from one to the next, so that a long queue is not read through.
WITH RECURSIVE queue (holder) AS (
    SELECT min(holder) FROM task WHERE workspace = :workspace AND state = 'pending'
    UNION ALL
    SELECT (SELECT min(t.holder) FROM task t
            WHERE t.workspace = :workspace AND t.state = 'pending' AND t.holder > queue.holder)
    FROM queue WHERE queue.holder IS NOT NULL
)
SELECT holder FROM queue WHERE holder IS NOT NULL;

-- name: has_due
-- Whether anything stands in an agent's queue that could be claimed; asked at every submission, so it reads no rows.
SELECT EXISTS (SELECT 1 FROM task
               WHERE workspace = :workspace AND state = 'pending' AND holder = :holder AND ready_at = 0 AND worker = '')
    OR EXISTS (SELECT 1 FROM task
               WHERE workspace = :workspace AND state = 'pending' AND holder = :holder
                 AND ready_at >= 1 AND ready_at <= :now AND worker = '');

-- name: due
-- With the event that began each, if it is there: whoever asks is about to claim it, and ends what cannot be read. What
-- was lost more often than so is left out. What
-- is due at once stands in the order of asking; of what is due again, those that have been so for the longest are looked
-- at, because reading them all to put them in order would take longer the more there are.
SELECT @t.task, @e.event FROM (
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND holder = :holder AND ready_at = 0
                     AND (worker = '' OR worker = :worker) AND losses <= :losses
                   ORDER BY began LIMIT :limit) AS fresh
    UNION ALL
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND holder = :holder
                     AND ready_at >= 1 AND ready_at <= :now
                     AND (worker = '' OR worker = :worker) AND losses <= :losses
                   ORDER BY ready_at, began LIMIT 256) AS again
    ORDER BY began LIMIT :limit
) AS t LEFT JOIN event e ON e.workspace = :workspace AND e.seq = t.began
ORDER BY t.began;

-- name: front
-- The same for all queues together.
SELECT @t.task, @e.event FROM (
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND ready_at = 0 AND worker = ''
                   ORDER BY began LIMIT :limit) AS fresh
    UNION ALL
    SELECT * FROM (SELECT @task FROM task
                   WHERE workspace = :workspace AND state = 'pending' AND ready_at > 0 AND ready_at <= :now
                     AND worker = ''
                   ORDER BY ready_at LIMIT 256) AS again
    ORDER BY began LIMIT :limit
) AS t LEFT JOIN event e ON e.workspace = :workspace AND e.seq = t.began
ORDER BY t.began;

-- name: next_due
SELECT min(ready_at) FROM task WHERE workspace = :workspace AND state = 'pending' AND ready_at > 0 AND ready_at > :now;

-- name: late
SELECT @task
FROM task WHERE workspace = :workspace AND state = 'pending' AND until <= :now ORDER BY until LIMIT :limit;

-- name: held
-- Each state has an index of its own, so that only what is open is looked at.
SELECT @task
FROM task
WHERE workspace = :workspace AND worker = :worker
  AND (state = 'running' OR state = 'waiting' OR state = 'cancelling' OR (state = 'pending' AND worker <> ''))
ORDER BY began;

-- name: cancelling
-- What someone wants this worker to stop.
SELECT id FROM task WHERE workspace = :workspace AND worker = :worker AND state = 'cancelling';

-- name: worker_beat
-- Not history, so it is no event.
INSERT INTO worker (workspace, id, home, count, hands) VALUES (:workspace, :worker, :home, :count, :hands)
ON CONFLICT (workspace, id) DO UPDATE SET home = excluded.home, count = excluded.count, hands = excluded.hands;

-- name: worker_leave
DELETE FROM worker WHERE workspace = :workspace AND id = :worker;

-- name: workers
SELECT id, home, count, hands FROM worker WHERE workspace = :workspace ORDER BY id;

-- name: unseen
-- Workers that have something and of whom there is no heartbeat. Each state has an index of its own, so that only what
-- is open is looked at.
SELECT DISTINCT t.worker FROM task t
WHERE t.workspace = :workspace AND t.worker <> ''
  AND (t.state = 'running' OR t.state = 'waiting' OR t.state = 'cancelling' OR (t.state = 'pending' AND t.worker <> ''))
  AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.workspace = t.workspace AND w.id = t.worker);
