-- The tally: statistics of the journal, rolled up by hour and by day. It is derived from the journal and can be
-- computed again; only `remit stats` reads it.

-- name: tally_mark
-- The last event that the tally has counted.
SELECT seq FROM tally_mark WHERE workspace = :workspace;

-- name: tally_mark_put
INSERT INTO tally_mark (workspace, seq) VALUES (:workspace, :seq)
ON CONFLICT (workspace) DO UPDATE SET seq = excluded.seq;

-- name: tally_rows
SELECT width, start, agent, first, last, data FROM tally
WHERE workspace = :workspace AND width = :width AND start >= :start AND start < :stop
  AND (:agent = '*' OR agent = :agent);

-- name: tally_row
SELECT width, start, agent, first, last, data FROM tally
WHERE workspace = :workspace AND width = :width AND start = :start AND agent = :agent;

-- name: tally_put
INSERT INTO tally (workspace, width, start, agent, first, last, data)
VALUES (:workspace, :width, :start, :agent, :first, :last, :data)
ON CONFLICT (workspace, width, start, agent)
DO UPDATE SET first = excluded.first, last = excluded.last, data = excluded.data;

-- name: tally_task
-- The facts that later slices need about an open task; for a run, also its state, start and first agent.
SELECT state, at, agent, data FROM tally_task WHERE workspace = :workspace AND task = :task;

-- name: tally_task_put
INSERT INTO tally_task (workspace, task, state, at, agent, data)
VALUES (:workspace, :task, :state, :at, :agent, :data)
ON CONFLICT (workspace, task)
DO UPDATE SET state = excluded.state, at = excluded.at, agent = excluded.agent, data = excluded.data;

-- name: tally_task_drop
DELETE FROM tally_task WHERE workspace = :workspace AND task = :task;

-- name: tally_runs
-- The number of open runs that started in that period.
SELECT state, count(*) FROM tally_task
WHERE workspace = :workspace AND state <> '' AND at >= :start AND at < :stop AND (:agent = '*' OR agent = :agent)
GROUP BY state;

-- name: events_between
SELECT @event FROM event
WHERE workspace = :workspace AND seq > :after AND seq <= :upto
ORDER BY seq LIMIT :limit;

-- name: events_of_run_before
SELECT @event FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND seq < :before
ORDER BY seq;
