-- Tasks and runs: changes by events, and lists.

-- name: task_add
INSERT INTO task (workspace, @task)
VALUES (:workspace, :@task);

-- name: task_claim
UPDATE task SET state = :state, worker = :worker, fence = :fence, attempt = :attempt, claimed_at = :claimed_at
WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_requeue
-- Requeue the task.
UPDATE task SET state = :state, worker = :worker, fence = :fence, ready_at = :ready_at, attempt = :attempt,
                failures = :failures
WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_lose
-- The process that held the task died.
UPDATE task SET losses = :losses WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_extend
-- A new deadline.
UPDATE task SET until = :until WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_set
UPDATE task SET state = :state WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_end
-- A final state is final: an ended task does not end again.
UPDATE task SET state = :state, ended_at = :ended_at, ended = :ended
WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_hand
UPDATE task SET holder = :holder WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_fund
-- A handoff that narrows the budget.
UPDATE task SET purse = :purse WHERE workspace = :workspace AND id = :id AND ended IS NULL;

-- name: task_drop
DELETE FROM task WHERE workspace = :workspace AND id = :id;

-- name: run_count
-- Events add to each figure; the first event creates the row.
INSERT INTO run (workspace, @run)
VALUES (:workspace, :@run)
ON CONFLICT (workspace, id) DO UPDATE SET
    members = run.members || excluded.members, tasks = run.tasks + excluded.tasks,
    handoffs = run.handoffs + excluded.handoffs, tokens = run.tokens + excluded.tokens,
    refusals = run.refusals + excluded.refusals, credits = run.credits + excluded.credits,
    requests = run.requests + excluded.requests;

-- name: run_drop
DELETE FROM run WHERE workspace = :workspace AND id = :id;

-- name: ask_put
-- Counts of model requests and stopped agents of a run.
INSERT INTO ask (workspace, @ask)
VALUES (:workspace, :@ask)
ON CONFLICT (workspace, run, key) DO UPDATE SET
    @set.ask;

-- name: ask_cut
DELETE FROM ask WHERE workspace = :workspace AND run = :run;

-- name: asks
SELECT key, times, in_vain, answers FROM ask
WHERE workspace = :workspace AND run = :run AND key IN (:first, :second, :third);

-- name: ask_page
SELECT @ask FROM ask WHERE workspace = :workspace AND (run, key) > (:run, :key) ORDER BY run, key LIMIT :limit;

-- name: standing
SELECT t.state, t.fence, t.failures, t.asked_how, t.purse,
       (SELECT count(*) FROM hold h WHERE h.workspace = t.workspace AND h.task = t.id AND h.state <> 'uncertain')
       + (SELECT count(*) FROM question q WHERE q.workspace = t.workspace AND q.task = t.id AND q.state = 'open')
FROM task t WHERE t.workspace = :workspace AND t.id = :task;

-- name: record
SELECT @task
FROM task WHERE workspace = :workspace AND id = :task;

-- name: run
-- The first agent of a run and its counts; a run with only its root task has no row.
SELECT t.id, e.agent, t.led_as, r.members, r.tasks, r.handoffs, r.tokens, r.refusals, r.credits, r.requests
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
LEFT JOIN run r ON r.workspace = t.workspace AND r.id = t.id
WHERE t.workspace = :workspace AND t.id = :run;

-- name: below
-- A task and its subtasks, including those submitted by ended tasks. The tree carries whole rows: with a join
-- afterwards, PostgreSQL would read all tasks.
WITH RECURSIVE tree (level, @task) AS (
    SELECT 0, @task FROM task WHERE workspace = :workspace AND id = :task
    UNION ALL
    SELECT tree.level + 1, @c.task FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> ''
    WHERE c.workspace = :workspace
)
SELECT @task FROM tree WHERE ended IS NULL ORDER BY level, began;

-- name: spawned
SELECT count(*) FROM task
WHERE workspace = :workspace AND parent = CAST(:parent AS text) AND parent <> '' AND ended IS NULL AND asked_how = 'spawn';

-- name: same_requests
SELECT @task
FROM task WHERE workspace = :workspace AND dedup_key = :dedup_key AND dedup_key <> '' AND asked_at > :since ORDER BY began DESC;

-- name: lineage
-- The retries of this task.
SELECT @task
FROM task WHERE workspace = :workspace AND origin = :origin AND origin <> '';

-- name: tasks
-- Newest first, among tasks that started between two events; '*' matches any. Reads the index on `began`, so a page
-- costs only its rows.
SELECT @t.task, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND (:session = '*' OR t.session = :session) AND (:agent = '*' OR t.holder = :agent)
  AND (:state = '*' OR t.state = :state) AND (:parent = '*' OR t.parent = :parent)
  AND t.began > :after AND t.began < :before
ORDER BY t.began DESC LIMIT :limit;

-- name: tasks_labelled
-- Tasks that began between two events, by a part of their first event. Other tasks may match too, so check the result.
SELECT @t.task, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND (:agent = '*' OR t.holder = :agent)
  AND (:state = '*' OR t.state = :state) AND (:parent = '*' OR t.parent = :parent)
  AND t.began > :after AND t.began < :before AND (:part = '*' OR replace(e.data, :part, '') <> e.data)
ORDER BY t.began DESC LIMIT :limit;

-- name: tasks_first
-- The same for the first tasks of runs, by their own index.
SELECT @t.task, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND t.parent = '' AND (:state = '*' OR t.state = :state)
  AND t.began > :after AND t.began < :before AND (:part = '*' OR replace(e.data, :part, '') <> e.data)
ORDER BY t.began DESC LIMIT :limit;

-- name: runs_of
-- The figures of these runs, by their ids as a JSON list.
SELECT t.id, e.agent, t.led_as, r.members, r.tasks, r.handoffs, r.tokens, r.refusals, r.credits, r.requests
FROM json_each(:ids) page JOIN task t ON t.workspace = :workspace AND t.id = page.value
JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
LEFT JOIN run r ON r.workspace = t.workspace AND r.id = t.id;

-- name: vitals_tasks
-- The tasks of these runs, counted by state and process: levels, and credits on hold. Only open tasks have holds.
WITH RECURSIVE tree (run, level, id, state, worker, is_open) AS (
    SELECT t.id, 1, t.id, t.state, t.worker, t.ended IS NULL
    FROM json_each(:ids) page JOIN task t ON t.workspace = :workspace AND t.id = page.value
    UNION ALL
    SELECT tree.run, tree.level + 1, c.id, c.state, c.worker, c.ended IS NULL
    FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> '' WHERE c.workspace = :workspace
)
SELECT run, state, CASE WHEN state = 'running' OR state = 'waiting' THEN worker ELSE '' END AS at_work, max(level),
       count(*), coalesce(sum(CASE WHEN is_open THEN (
           SELECT sum(h.credits) FROM hold h
           WHERE h.workspace = :workspace AND h.task = tree.id AND h.state <> 'uncertain'
       ) END), 0), is_open
FROM tree GROUP BY run, state, at_work, is_open;

-- name: vitals_open
-- The open questions of these runs, and the time of their latest events.
SELECT page.value, (SELECT count(*) FROM question q
                    WHERE q.workspace = :workspace AND q.run = page.value AND q.state = 'open'),
       (SELECT e.at FROM event e WHERE e.workspace = :workspace AND e.run = page.value AND e.run <> ''
        ORDER BY e.seq DESC LIMIT 1)
FROM json_each(:ids) page;

-- name: vitals_leases
SELECT l.id, l.granted FROM json_each(:ids) page
JOIN lease l ON l.workspace = :workspace AND l.id = page.value AND l.unit = 'credits';

-- name: vitals_ended
-- The ends of these runs, of those that pay from leases.
SELECT t.id, e.data FROM json_each(:ids) page
JOIN task t ON t.workspace = :workspace AND t.id = page.value AND t.purse <> ''
JOIN event e ON e.workspace = t.workspace AND e.seq = t.ended;

-- name: tasks_of_agent
-- The tasks that an agent holds, among those with its events in one part of the journal.
SELECT @t.task, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND t.holder = :agent AND (:state = '*' OR t.state = :state)
  AND (:parent = '*' OR t.parent = :parent) AND t.began < :before
  AND t.id IN (SELECT v.task FROM event v
               WHERE v.workspace = :workspace AND v.seq > :after AND v.seq < :behind AND v.agent = :agent);

-- name: tasks_gone
-- Failed, dead and cancelled tasks, by their own index: they are few compared with completed ones.
SELECT @t.task, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND (t.state = 'failed' OR t.state = 'cancelled' OR t.state = 'dead')
  AND t.state = CAST(:state AS text) AND (:agent = '*' OR t.holder = :agent) AND (:parent = '*' OR t.parent = :parent)
  AND t.began < :before
ORDER BY t.began DESC LIMIT :limit;

-- name: tasks_of_session
-- Reads the trees of the session's runs; only the rows of the page are read whole.
WITH RECURSIVE tree (@task) AS (
    SELECT @task FROM task WHERE workspace = :workspace AND session = :session AND parent = ''
    UNION ALL
    SELECT @c.task FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> '' WHERE c.workspace = :workspace
), page (@task) AS (
    SELECT @task FROM tree
    WHERE began < :before AND (:agent = '*' OR holder = :agent) AND (:state = '*' OR state = :state)
      AND (:parent = '*' OR parent = :parent)
    ORDER BY began DESC LIMIT :limit
)
SELECT @page.task, e.data
FROM page JOIN event e ON e.workspace = :workspace AND e.seq = page.began
ORDER BY page.began DESC;

-- name: runs_of_session
-- The ended runs of an agent in a session, latest end first, by the index on the session.
SELECT @t.task
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND t.session = :session AND t.parent = '' AND t.ended IS NOT NULL AND e.agent = :agent
ORDER BY t.ended DESC LIMIT :limit;

-- name: tasks_open
-- Open tasks, by the indexes of the open states: they are few compared with ended ones. The plus keeps SQLite from
-- using the index on `began` instead. Only the rows of the page are read whole.
WITH page (seq) AS (
    SELECT t.began FROM task t
    WHERE t.workspace = :workspace AND t.ended IS NULL
      AND (t.state = 'pending' OR t.state = 'running' OR t.state = 'waiting' OR t.state = 'cancelling')
      AND (:state = 'open' OR t.state = :state) AND (:session = '*' OR t.session = :session)
      AND (:agent = '*' OR t.holder = :agent) AND (:parent = '*' OR t.parent = :parent) AND +t.began < :before
    ORDER BY +t.began DESC LIMIT :limit
)
SELECT @t.task, e.data
FROM page JOIN task t ON t.workspace = :workspace AND t.began = page.seq
JOIN event e ON e.workspace = :workspace AND e.seq = page.seq
ORDER BY page.seq DESC;

-- name: tasks_of_run
-- Reads the tree of the run. There is no index on the run of a task, because it would cost every task.
WITH RECURSIVE tree (@task) AS (
    SELECT @task FROM task WHERE workspace = :workspace AND id = :run
    UNION ALL
    SELECT @c.task FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> '' WHERE c.workspace = :workspace
)
SELECT @tree.task, e.data
FROM tree JOIN event e ON e.workspace = :workspace AND e.seq = tree.began
WHERE tree.began < :before
ORDER BY tree.began DESC;

-- name: tasks_of_parent
SELECT @t.task, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND t.parent = CAST(:parent AS text) AND t.parent <> '' AND t.began < :before
ORDER BY t.began DESC;

-- name: runs
-- Newest runs first, each with its number of tasks and refusals.
SELECT @t.task,
       t.id, e.agent, t.led_as, r.members, r.tasks, r.handoffs, r.tokens, r.refusals, r.credits, r.requests, e.data
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
LEFT JOIN run r ON r.workspace = t.workspace AND r.id = t.id
WHERE t.workspace = :workspace AND t.parent = '' AND t.began < :before
ORDER BY t.began DESC LIMIT :limit;

-- name: roots
-- Page by page, in the order of their start: a search for old runs reads all of them, but never at once.
SELECT id, began, asked_at, ended_at FROM task
WHERE workspace = :workspace AND parent = '' AND began > :after ORDER BY began LIMIT :limit;

-- name: prunable
-- Every task of a run, with a retry of it or of its origin that is open or ended recently. The retry is a scalar
-- subquery: with EXISTS, PostgreSQL would read all retries.
WITH RECURSIVE tree (id, state, ended_at, origin) AS (
    SELECT id, state, ended_at, origin FROM task WHERE workspace = :workspace AND id = :run
    UNION ALL
    SELECT c.id, c.state, c.ended_at, c.origin FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> ''
    WHERE c.workspace = :workspace
)
SELECT id, state, ended_at, (
    SELECT t.id FROM task t
    WHERE t.workspace = :workspace AND t.origin <> ''
      AND t.origin = CASE WHEN tree.origin = '' THEN tree.id ELSE tree.origin END
      AND (t.ended IS NULL OR t.ended_at >= :before)
    LIMIT 1
)
FROM tree;

-- name: of_run
-- Every task of a run, in any state.
WITH RECURSIVE tree (id, state, ended_at) AS (
    SELECT id, state, ended_at FROM task WHERE workspace = :workspace AND id = :run
    UNION ALL
    SELECT c.id, c.state, c.ended_at FROM tree JOIN task c ON c.parent = tree.id AND c.parent <> ''
    WHERE c.workspace = :workspace
)
SELECT id, state, ended_at FROM tree;

-- name: ids_like
-- Ids with this prefix; with `runs`, only ids of runs.
SELECT id FROM task
WHERE workspace = :workspace AND id >= :start AND id < :stop AND (:runs = '' OR parent = '')
ORDER BY id LIMIT :limit;

-- name: ids_ending
-- Ids with this suffix. No index has suffixes, so all ids are read.
SELECT id FROM task
WHERE workspace = :workspace AND substr(id, length(id) - length(:ending) + 1) = :ending AND (:runs = '' OR parent = '')
ORDER BY id LIMIT :limit;

-- name: used_key_put
-- The first user of a key keeps it. When its run is pruned, the row gets the final state of its task.
INSERT INTO used_key (workspace, @used_key)
VALUES (:workspace, :@used_key)
ON CONFLICT (workspace, key) DO UPDATE SET
    @set.used_key;

-- name: used_key
SELECT @used_key FROM used_key WHERE workspace = :workspace AND key = :key;

-- name: keys_of_run
SELECT @used_key FROM used_key WHERE workspace = :workspace AND run = :run ORDER BY key;

-- name: key_of_task
SELECT @used_key FROM used_key WHERE workspace = :workspace AND task = :task;

-- name: used_key_page
SELECT @used_key FROM used_key WHERE workspace = :workspace AND key > :key ORDER BY key LIMIT :limit;

-- name: task_page
-- All rows, page by page, for the doctor.
SELECT @task
FROM task WHERE workspace = :workspace AND id > :id ORDER BY id LIMIT :limit;

-- name: run_page
SELECT @run FROM run WHERE workspace = :workspace AND id > :id ORDER BY id LIMIT :limit;
