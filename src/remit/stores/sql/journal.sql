-- The journal: what happened, in order.

-- name: head
-- Where the journal ends: the next event continues from here.
SELECT seq, hash FROM event WHERE workspace = :workspace ORDER BY seq DESC LIMIT 1;

-- name: done
-- What an operation answered the first time, and the hash of its first event; no row if it has not happened.
SELECT answer, hash FROM event WHERE workspace = :workspace AND op = :op;

-- name: done_under
-- The events of all operations whose id begins so; `after` is the first text behind them all.
SELECT @event FROM event
WHERE workspace = :workspace AND op >= :prefix AND op < :after;

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

-- name: event
SELECT @event FROM event
WHERE workspace = :workspace AND seq = :seq;

-- name: marks
-- What happened to which task, from a place on; what the events say may be long, and is not read.
SELECT seq, kind, at, run, session, task, agent, op, hash FROM event
WHERE workspace = :workspace AND seq >= :since ORDER BY seq LIMIT :limit;

-- name: events
-- In order, so many of those after one event and before another; '*' stands for any.
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
ORDER BY seq LIMIT :limit;

-- name: events_latest
-- The same from the end on.
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
ORDER BY seq DESC LIMIT :limit;

-- name: run_of_task
-- Where the events of a task are found.
SELECT run FROM task WHERE workspace = :workspace AND id = :task;

-- name: events_of_run
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND seq > :after AND seq < :before
  AND at >= :since AND at < :until AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
ORDER BY seq LIMIT :limit;

-- name: events_of_run_latest
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND seq > :after AND seq < :before
  AND at >= :since AND at < :until AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
ORDER BY seq DESC LIMIT :limit;

-- name: to_empty
-- What a prune will empty, and only what stays of it: what the events say may be long.
SELECT seq, kind, at, run, session, task, agent, op, hash FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND data <> ''
  AND kind NOT IN ('entry.set', 'entry.touched', 'entries.removed', 'message.sent', 'messages.taken', 'breaker.set')
ORDER BY seq;

-- name: events_of_session
-- Through the session's runs: a session has few of them, and an index on every event would cost every event.
SELECT @event FROM event
WHERE workspace = :workspace AND session = :session AND run <> ''
  AND run IN (SELECT id FROM task WHERE workspace = :workspace AND session = :session AND parent = '')
  AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
ORDER BY seq LIMIT :limit;

-- name: events_of_session_latest
SELECT @event FROM event
WHERE workspace = :workspace AND session = :session AND run <> ''
  AND run IN (SELECT id FROM task WHERE workspace = :workspace AND session = :session AND parent = '')
  AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
ORDER BY seq DESC LIMIT :limit;
