-- Every query remit runs, by name. All of them name the workspace; a test makes sure of it.

-- name: head
-- Where the journal ends: the next event continues from here.
SELECT seq, hash FROM event WHERE workspace = :workspace ORDER BY seq DESC LIMIT 1;

-- name: answer_of
-- What an operation answered the first time; no row if it has not happened.
SELECT answer FROM event WHERE workspace = :workspace AND op = :op;

-- name: append
-- The one way into the journal. An operation that has been done before adds no row, and so is found out.
INSERT INTO event (@event)
VALUES (:@event)
ON CONFLICT DO NOTHING;

-- name: event_empty
-- What the events of a pruned run said; that they happened stays, and so does the chain of hashes.
UPDATE event SET data = '', answer = NULL
WHERE workspace = :workspace AND run = :run AND run <> ''
  AND kind NOT IN ('entry.set', 'entry.touched', 'entries.removed', 'message.sent', 'messages.taken', 'breaker.set');

-- name: task_add
INSERT INTO task (workspace, @task)
VALUES (:workspace, :@task);

-- name: task_claim
UPDATE task SET state = :state, worker = :worker, fence = :fence, attempt = :attempt, claimed_at = :claimed_at
WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_requeue
-- Back into the queue.
UPDATE task SET state = :state, worker = :worker, fence = :fence, ready_at = :ready_at, attempt = :attempt,
                failures = :failures
WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_set
UPDATE task SET state = :state WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_end
-- Terminal is final: what has ended does not end again.
UPDATE task SET state = :state, ended_at = :ended_at, ended = :ended
WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_hand
UPDATE task SET holder = :holder WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_drop
DELETE FROM task WHERE workspace = :workspace AND id = :id;

-- name: run_add
INSERT INTO run (workspace, @run)
VALUES (:workspace, :@run);

-- name: run_count
-- Every figure is what an event adds to it.
UPDATE run SET members = members || :members, tasks = tasks + :tasks, handoffs = handoffs + :handoffs,
               tokens = tokens + :tokens, refusals = refusals + :refusals
WHERE workspace = :workspace AND id = :id;

-- name: run_drop
DELETE FROM run WHERE workspace = :workspace AND id = :id;

-- name: run
SELECT @run FROM run WHERE workspace = :workspace AND id = :run;

-- name: card_put
INSERT INTO card (workspace, @card)
VALUES (:workspace, :@card)
ON CONFLICT (workspace, name) DO UPDATE SET
    @set.card;

-- name: card
SELECT data FROM card WHERE workspace = :workspace AND name = :agent;

-- name: cards
SELECT @card FROM card WHERE workspace = :workspace ORDER BY name;

-- name: worker_beat
-- Not history: the one thing that is written and is not an event.
INSERT INTO worker (workspace, id, home, count, hands) VALUES (:workspace, :worker, :home, :count, :hands)
ON CONFLICT (workspace, id) DO UPDATE SET home = excluded.home, count = excluded.count, hands = excluded.hands;

-- name: worker_leave
DELETE FROM worker WHERE workspace = :workspace AND id = :worker;

-- name: workers
SELECT id, home, count, hands FROM worker WHERE workspace = :workspace ORDER BY id;

-- name: breaker_put
INSERT INTO breaker (workspace, @breaker)
VALUES (:workspace, :@breaker)
ON CONFLICT (workspace, name) DO UPDATE SET
    @set.breaker;

-- name: breaker
SELECT state, failures, until, probe, why FROM breaker WHERE workspace = :workspace AND name = :name;

-- name: breakers
SELECT @breaker FROM breaker WHERE workspace = :workspace ORDER BY name;

-- name: entry_put
INSERT INTO entry (workspace, @entry)
VALUES (:workspace, :@entry)
ON CONFLICT (workspace, namespace, key) DO UPDATE SET
    @set.entry;

-- name: entry_touch
UPDATE entry SET expires_at = :expires_at
WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: entry_drop
DELETE FROM entry WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: message_add
INSERT INTO message (workspace, @message)
VALUES (:workspace, :@message);

-- name: message_take
-- Delivered once: what is taken stays taken.
UPDATE message SET taken_at = :taken_at, taken_by = :taken_by
WHERE workspace = :workspace AND id = :id AND taken_at IS NULL;

-- name: standing
SELECT state, fence, failures, asked_how FROM task WHERE workspace = :workspace AND id = :task;

-- name: record
SELECT @task
FROM task WHERE workspace = :workspace AND id = :task;

-- name: running
-- One left behind by a dead process stops counting when its time is up.
SELECT count(*) FROM task
WHERE workspace = :workspace AND holder = :holder AND state = 'running' AND until > :now;

-- name: working
-- What a task from the queue delegates is done in its slot, so it keeps it until that is over.
SELECT count(*) FROM task t
WHERE t.workspace = :workspace AND t.asked_how <> 'delegate' AND (t.state = 'running' OR (t.state = 'waiting'
  AND EXISTS (SELECT 1 FROM task c WHERE c.workspace = t.workspace AND c.parent = t.id AND c.parent <> ''
              AND c.ended IS NULL AND c.asked_how = 'delegate')));

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

-- name: due
-- With the event that began each: whoever asks is about to claim it.
SELECT @t.task, @e.event
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND t.state = 'pending' AND t.holder = :holder AND t.ready_at <= :now
  AND (t.worker = '' OR t.worker = :worker)
ORDER BY t.began LIMIT :limit;

-- name: next_due
SELECT min(ready_at) FROM task WHERE workspace = :workspace AND state = 'pending' AND ready_at > :now;

-- name: late
SELECT @task
FROM task WHERE workspace = :workspace AND state = 'pending' AND until <= :now ORDER BY began LIMIT :limit;

-- name: below
-- A task and everything under it; also what was submitted by tasks that have ended since.
WITH RECURSIVE tree (id, level) AS (
    SELECT id, 0 FROM task WHERE workspace = :workspace AND id = :task
    UNION ALL
    SELECT c.id, tree.level + 1 FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> ''
    WHERE c.workspace = :workspace
)
SELECT @task.task
FROM tree JOIN task ON task.workspace = :workspace AND task.id = tree.id
WHERE ended IS NULL ORDER BY tree.level, began;

-- name: spawned
SELECT count(*) FROM task
WHERE workspace = :workspace AND parent = :parent AND parent <> '' AND ended IS NULL AND asked_how = 'spawn';

-- name: same_requests
SELECT @task
FROM task WHERE workspace = :workspace AND dedup_key = :dedup_key AND dedup_key <> '' AND asked_at > :since ORDER BY began DESC;

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

-- name: tasks
-- '*' stands for any.
SELECT @t.task, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND (:session = '*' OR t.session = :session) AND (:agent = '*' OR t.holder = :agent)
  AND (:state = '*' OR t.state = :state OR (:state = 'open' AND t.ended IS NULL))
  AND (:parent = '*' OR t.parent = :parent) AND (:run = '*' OR t.run = :run) AND t.began < :before
ORDER BY t.began DESC LIMIT :limit;

-- name: old
-- Runs that ended before then.
SELECT id FROM task WHERE workspace = :workspace AND parent = '' AND ended_at < :before ORDER BY began LIMIT :limit;

-- name: of_run
-- Every task of a run, whatever became of it.
WITH RECURSIVE tree (id) AS (
    SELECT id FROM task WHERE workspace = :workspace AND id = :run
    UNION ALL
    SELECT c.id FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> '' WHERE c.workspace = :workspace
)
SELECT task.id, state, ended_at FROM tree JOIN task ON task.workspace = :workspace AND task.id = tree.id;

-- name: runs
-- The newest runs first, each with the number of tasks and refusals in it.
SELECT @t.task,
       e.data, @r.run
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
JOIN run r ON r.workspace = t.workspace AND r.id = t.id
WHERE t.workspace = :workspace AND t.parent = '' AND t.began < :before
ORDER BY t.began DESC LIMIT :limit;

-- name: ids_like
-- Ids that begin with what a person typed.
SELECT id FROM task WHERE workspace = :workspace AND id >= :start AND id < :stop ORDER BY id LIMIT :limit;

-- name: entry
SELECT @entry
FROM entry WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: entries_recent
SELECT @entry
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND (expires_at IS NULL OR expires_at > :now)
ORDER BY updated_at DESC, key LIMIT :limit;

-- name: entries_recent_from
-- A prefix is a range of keys from `start` up to but not including `stop`; never a pattern.
SELECT @entry
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND key >= :start AND key < :stop
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY updated_at DESC, key LIMIT :limit;

-- name: entries_by_key
SELECT @entry
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND key >= :start AND key < :stop
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY key LIMIT :limit;

-- name: expired
SELECT namespace, key FROM entry
WHERE workspace = :workspace AND expires_at IS NOT NULL AND expires_at <= :now
ORDER BY expires_at LIMIT :limit;

-- name: namespaces
SELECT namespace, count(*) FROM entry
WHERE workspace = :workspace AND (expires_at IS NULL OR expires_at > :now)
GROUP BY namespace ORDER BY namespace;

-- name: waiting
SELECT id, session, sender, recipient, text, sent_at, reader, about FROM message
WHERE workspace = :workspace AND session = :session AND taken_at IS NULL
  AND ((recipient = :agent AND reader = '') OR (reader = :task AND reader <> ''))
ORDER BY seq LIMIT :limit;

-- name: orphans
-- Announcements that nobody will read: the task they are for has ended.
SELECT m.id, m.session, m.sender, m.recipient, m.text, m.sent_at, m.reader, m.about
FROM message m JOIN task t ON t.workspace = m.workspace AND t.id = m.reader
WHERE m.workspace = :workspace AND m.taken_at IS NULL AND m.reader <> '' AND t.ended IS NOT NULL
ORDER BY m.seq LIMIT :limit;

-- name: event
SELECT @event FROM event
WHERE workspace = :workspace AND seq = :seq;

-- name: events
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND at >= :since AND at < :until
ORDER BY seq LIMIT :limit;

-- name: events_of_run
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND seq > :after AND at >= :since AND at < :until
ORDER BY seq LIMIT :limit;

-- name: events_of_session
-- Through the session's runs: a session has few of them, and an index on every event would cost every event.
SELECT @event FROM event
WHERE workspace = :workspace AND session = :session AND run <> ''
  AND run IN (SELECT id FROM task WHERE workspace = :workspace AND session = :session AND parent = '')
  AND seq > :after AND at >= :since AND at < :until
ORDER BY seq LIMIT :limit;

-- name: all_tasks
SELECT @task
FROM task WHERE workspace = :workspace;

-- name: all_entries
SELECT @entry
FROM entry WHERE workspace = :workspace;

-- name: all_runs
SELECT @run FROM run WHERE workspace = :workspace;

-- name: all_messages
SELECT @message
FROM message WHERE workspace = :workspace;
