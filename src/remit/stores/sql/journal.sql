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

-- name: event_cut
-- A gap mostly grows at its end. Where one began already nothing is left, and PostgreSQL would read what was deleted.
DELETE FROM event
WHERE workspace = :workspace AND seq <= :last AND seq > (
    SELECT coalesce(max(g.last), :first - 1) FROM gap g
    WHERE g.workspace = :workspace AND g.last >= :first AND g.last <= :last AND g.first = :first
);

-- name: blob_put
INSERT INTO blob (workspace, @blob) VALUES (:workspace, :@blob);

-- name: blob_cut
DELETE FROM blob WHERE workspace = :workspace AND seq >= :first AND seq <= :last;

-- name: blob
SELECT text FROM blob WHERE workspace = :workspace AND seq = :seq;

-- name: blob_of
-- What an operation answered, if that is kept beside its event.
SELECT b.text FROM event e JOIN blob b ON b.workspace = e.workspace AND b.seq = e.seq
WHERE e.workspace = :workspace AND e.op = :op;

-- name: blobs
SELECT count(*) FROM blob WHERE workspace = :workspace;

-- name: gap_cut
DELETE FROM gap WHERE workspace = :workspace AND last >= :first AND last <= :last;

-- name: gap_add
INSERT INTO gap (workspace, @gap)
VALUES (:workspace, :@gap);

-- name: gap_before
-- Which gap ends right before an event.
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND last = :last;

-- name: gaps_around
-- Those that end within a stretch, or right before it, and the next one, which may begin within it.
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND last >= :before AND last <= :last
UNION ALL
SELECT * FROM (SELECT first, last, hash FROM gap
               WHERE workspace = :workspace AND last > :last ORDER BY last LIMIT 1) AS again;

-- name: gaps_stated
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND stated = :seq ORDER BY last;

-- name: gaps_after
-- All of them page by page.
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND last > :last ORDER BY last LIMIT :limit;

-- name: event
SELECT @event FROM event
WHERE workspace = :workspace AND seq = :seq;

-- name: marks
-- What happened to which task, from a place on; what the events say may be long, and is not read.
SELECT seq, kind, at, run, session, task, agent, op, hash FROM event
WHERE workspace = :workspace AND seq >= :since ORDER BY seq LIMIT :limit;

-- name: events
-- In order, so many of those after one event and before another; '*' stands for any. `kinds` are between spaces: a text
-- has a word if it is another text without it. That reads the same on every database.
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq LIMIT :limit;

-- name: events_latest
-- The same from the end on.
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq DESC LIMIT :limit;

-- name: run_of_task
-- Where the events of a task are found.
SELECT run FROM task WHERE workspace = :workspace AND id = :task;

-- name: events_of_run
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND seq > :after AND seq < :before
  AND at >= :since AND at < :until AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq LIMIT :limit;

-- name: events_of_run_latest
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND seq > :after AND seq < :before
  AND at >= :since AND at < :until AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq DESC LIMIT :limit;

-- name: marks_of_run
-- That they happened; what the events say may be long, and is not read.
SELECT seq, kind, at, run, session, task, agent, op, hash FROM event
WHERE workspace = :workspace AND run = :run AND run <> ''
ORDER BY seq;

-- name: lasting_of_run
-- Of entries and breakers, which outlive it; of messages, which go with it; and what it has cost.
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> ''
  AND kind IN ('entry.set', 'entry.touched', 'entries.removed', 'breaker.set', 'message.sent', 'messages.taken',
               'hold.settled', 'hold.reconciled', 'credits.spent', 'tokens.used', 'account.set')
ORDER BY seq;

-- name: events_of_session
-- Through the session's runs: a session has few of them, and an index on every event would cost every event.
SELECT @event FROM event
WHERE workspace = :workspace AND session = :session AND run <> ''
  AND run IN (SELECT id FROM task WHERE workspace = :workspace AND session = :session AND parent = '')
  AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq LIMIT :limit;

-- name: events_of_session_latest
SELECT @event FROM event
WHERE workspace = :workspace AND session = :session AND run <> ''
  AND run IN (SELECT id FROM task WHERE workspace = :workspace AND session = :session AND parent = '')
  AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq DESC LIMIT :limit;

-- name: chapter_end
-- Up to which event the journal has chapters.
SELECT last FROM chapter WHERE workspace = :workspace ORDER BY last DESC LIMIT 1;

-- name: chapter_begin
-- From which event on the journal has chapters: what is older was pruned, or forgotten.
SELECT first FROM chapter WHERE workspace = :workspace ORDER BY last LIMIT 1;

-- name: chapter_facts
SELECT kind, agent, min(at), max(at) FROM event
WHERE workspace = :workspace AND seq > :after AND seq <= :upto
GROUP BY kind, agent;

-- name: chapter_add
INSERT INTO chapter (workspace, @chapter) VALUES (:workspace, :@chapter);

-- name: chapter_cut
DELETE FROM chapter WHERE workspace = :workspace AND last >= :first AND last <= :last AND first >= :first;

-- name: chapters
-- Those that may have what is looked for, in order; '*' stands for any. The last one is that in which `before` lies.
SELECT @chapter FROM chapter
WHERE workspace = :workspace AND last > :after AND first < :before AND latest >= :since AND earliest < :until
  AND last <= coalesce((SELECT c.last FROM chapter c WHERE c.workspace = :workspace AND c.last >= :before - 1
                        ORDER BY c.last LIMIT 1), :before)
  AND (:agent = '*' OR agents = '*' OR replace(agents, ' ' || :agent || ' ', '') <> agents)
ORDER BY last LIMIT :limit;

-- name: chapters_latest
-- The same from the end on.
SELECT @chapter FROM chapter
WHERE workspace = :workspace AND last > :after AND first < :before AND latest >= :since AND earliest < :until
  AND last <= coalesce((SELECT c.last FROM chapter c WHERE c.workspace = :workspace AND c.last >= :before - 1
                        ORDER BY c.last LIMIT 1), :before)
  AND (:agent = '*' OR agents = '*' OR replace(agents, ' ' || :agent || ' ', '') <> agents)
ORDER BY last DESC LIMIT :limit;

-- name: last_before
-- The last event before a time, of those behind the chapters.
SELECT seq FROM event WHERE workspace = :workspace AND seq > :after AND at < :until ORDER BY seq DESC LIMIT 1;
