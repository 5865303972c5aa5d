-- The journal: all events, in order.

-- name: head
-- The end of the journal; the next event continues from here.
SELECT seq, hash FROM event WHERE workspace = :workspace ORDER BY seq DESC LIMIT 1;

-- name: done
-- The recorded answer of an operation and the hash of its first event; no row if the operation is new.
SELECT answer, hash FROM event WHERE workspace = :workspace AND op = :op;

-- name: done_under
-- The events of all operations whose id has this prefix; `after` is the first text after that range.
SELECT @event FROM event
WHERE workspace = :workspace AND op >= :prefix AND op < :after;

-- name: append
-- The only statement that appends to the journal. A repeated operation adds no row, which is how it is detected.
INSERT INTO event (@event)
VALUES (:@event)
ON CONFLICT DO NOTHING;

-- name: event_cut
-- If a gap already starts here, delete only behind its end: PostgreSQL would read the deleted rows again.
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
-- The answer of an operation, if it is stored as a blob.
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
-- The gap that ends right before an event.
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND last = :last;

-- name: gaps_around
-- The gaps that end within a range or right before it, and the next one, which may start within it.
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND last >= :before AND last <= :last
UNION ALL
SELECT * FROM (SELECT first, last, hash FROM gap
               WHERE workspace = :workspace AND last > :last ORDER BY last LIMIT 1) AS again;

-- name: gaps_stated
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND stated = :seq ORDER BY last;

-- name: gaps_after
-- All rows, page by page.
SELECT first, last, hash FROM gap WHERE workspace = :workspace AND last > :last ORDER BY last LIMIT :limit;

-- name: event
SELECT @event FROM event
WHERE workspace = :workspace AND seq = :seq;

-- name: marks
-- Kind and task of each event from a position on. The data may be long and is not read.
SELECT seq, kind, at, run, session, task, agent, op, hash FROM event
WHERE workspace = :workspace AND seq >= :since ORDER BY seq LIMIT :limit;

-- name: events
-- The first events between two positions, in order; '*' matches any. `kinds` are separated by spaces: a text contains
-- a word if removing the word changes the text. This works the same on every database.
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq LIMIT :limit;

-- name: events_latest
-- The same, from the end.
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND seq < :before AND at >= :since AND at < :until
  AND (:agent = '*' OR agent = :agent) AND (:task = '*' OR task = :task)
  AND (:kinds = '*' OR replace(:kinds, ' ' || kind || ' ', '') <> :kinds)
ORDER BY seq DESC LIMIT :limit;

-- name: run_of_task
-- The positions of the events of a task.
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
-- The headers of the events. The data may be long and is not read.
SELECT seq, kind, at, run, session, task, agent, op, hash FROM event
WHERE workspace = :workspace AND run = :run AND run <> ''
ORDER BY seq;

-- name: lasting_of_run
-- Events of entries and breakers, which outlive the run; of messages, which are pruned with it; and its costs.
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> ''
  AND kind IN ('entry.set', 'entry.touched', 'entries.removed', 'breaker.set', 'message.sent', 'messages.taken',
               'hold.settled', 'hold.reconciled', 'credits.spent', 'tokens.used', 'account.set')
ORDER BY seq;

-- name: events_of_session
-- Reads the runs of the session, which are few. An index by session would cost every event.
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
-- The last event that is in a chapter.
SELECT last FROM chapter WHERE workspace = :workspace ORDER BY last DESC LIMIT 1;

-- name: chapter_begin
-- The first event that is in a chapter; older ones were pruned or evicted.
SELECT first FROM chapter WHERE workspace = :workspace ORDER BY last LIMIT 1;

-- name: chapter_facts
SELECT kind, agent, min(at), max(at) FROM event
WHERE workspace = :workspace AND seq > :after AND seq <= :upto
GROUP BY kind, agent;

-- name: chapter_firsts
-- The first events of the tasks that began there.
SELECT data FROM event
WHERE workspace = :workspace AND seq > :after AND seq <= :upto AND kind IN ('task.started', 'task.submitted');

-- name: chapter_add
INSERT INTO chapter (workspace, @chapter) VALUES (:workspace, :@chapter);

-- name: chapter_cut
DELETE FROM chapter WHERE workspace = :workspace AND last >= :first AND last <= :last AND first >= :first;

-- name: chapters
-- The chapters that may contain a match, in order; '*' matches any. The last one contains `before`.
SELECT @chapter FROM chapter
WHERE workspace = :workspace AND last > :after AND first < :before AND latest >= :since AND earliest < :until
  AND last <= coalesce((SELECT c.last FROM chapter c WHERE c.workspace = :workspace AND c.last >= :before - 1
                        ORDER BY c.last LIMIT 1), :before)
  AND (:agent = '*' OR agents = '*' OR replace(agents, ' ' || :agent || ' ', '') <> agents)
  AND (:label = '*' OR labels = '*' OR replace(labels, :label, '') <> labels)
ORDER BY last LIMIT :limit;

-- name: chapters_latest
-- The same, from the end.
SELECT @chapter FROM chapter
WHERE workspace = :workspace AND last > :after AND first < :before AND latest >= :since AND earliest < :until
  AND last <= coalesce((SELECT c.last FROM chapter c WHERE c.workspace = :workspace AND c.last >= :before - 1
                        ORDER BY c.last LIMIT 1), :before)
  AND (:agent = '*' OR agents = '*' OR replace(agents, ' ' || :agent || ' ', '') <> agents)
  AND (:label = '*' OR labels = '*' OR replace(labels, :label, '') <> labels)
ORDER BY last DESC LIMIT :limit;

-- name: last_before
-- The last event before a time, among those after the last chapter.
SELECT seq FROM event WHERE workspace = :workspace AND seq > :after AND at < :until ORDER BY seq DESC LIMIT 1;
