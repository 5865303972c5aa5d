-- Named statements for PostgreSQL only; all others are in sql/.

-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: lock
-- One writer at a time for each journal, over all processes, until the transaction ends. The locks are taken in order,
-- to avoid a deadlock.
SELECT pg_advisory_xact_lock(key) FROM unnest(:keys::bigint[]) AS key;

-- name: start
-- The end of the journal, the present schema number, because a newer remit may have migrated the store meanwhile, and
-- the mark of a workspace that is being moved.
SELECT coalesce((SELECT number FROM remit.version), 0), e.seq, e.hash, m.state, m.place, m.address, m.generation
FROM (VALUES (1)) AS always LEFT JOIN LATERAL (
    SELECT seq, hash FROM event WHERE workspace = :workspace ORDER BY seq DESC LIMIT 1
) e ON true LEFT JOIN moving m ON m.name = :workspace;

-- name: done_of
-- The operations of this list that were done, with their answers.
SELECT op, answer, hash FROM event WHERE workspace = :workspace AND op = ANY(:ops::text[]);

-- name: standings
SELECT t.id, t.state, t.fence, t.failures, t.asked_how, t.purse,
       (SELECT count(*) FROM hold h WHERE h.workspace = t.workspace AND h.task = t.id AND h.state <> 'uncertain')
       + (SELECT count(*) FROM question q WHERE q.workspace = t.workspace AND q.task = t.id AND q.state = 'open')
FROM task t WHERE t.workspace = :workspace AND t.id = ANY(:tasks::text[]);

-- name: same_requests_of
SELECT @task
FROM task WHERE workspace = :workspace AND dedup_key = ANY(:keys::text[]) AND dedup_key <> '';

-- name: used_keys_of
SELECT @used_key FROM used_key WHERE workspace = :workspace AND key = ANY(:keys::text[]);

-- name: leases_of
SELECT @lease FROM lease WHERE workspace = :workspace AND id = ANY(:leases::text[]);

-- name: holds_disputed_of
SELECT DISTINCT ON (agent) @hold FROM hold
WHERE workspace = :workspace AND agent = ANY(:agents::text[]) AND billed <> '' ORDER BY agent, id;

-- name: run_facts_of
SELECT t.id, e.agent, t.led_as, r.members, r.tasks, r.handoffs, r.tokens, r.refusals, r.credits, r.requests
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
LEFT JOIN run r ON r.workspace = t.workspace AND r.id = t.id
WHERE t.workspace = :workspace AND t.id = ANY(:runs::text[]);

-- name: append
-- We hold the lock and the operation is new. If the position is taken nevertheless, the transaction must fail.
INSERT INTO event (@event)
VALUES (:@event);

-- name: notify
SELECT pg_notify('remit', :workspace);

-- name: notify_words
-- Pieces of models' answers, in order. Nothing is stored.
SELECT pg_notify('remit_words', message) FROM unnest(:messages::text[]) AS message;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: look
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: session
-- Session settings. They are set after connecting, because poolers refuse or drop them during it.
SELECT set_config(name, value, false) FROM unnest(:names::text[], :values::text[]) AS wanted (name, value);

-- name: backend
-- The id of our server process. A pooler reports a different number when connecting.
SELECT pg_backend_pid();

-- name: durable
-- Wait for the disk, even if the server is configured not to. Returns the id of our server process, as in
-- notifications.
SELECT pg_backend_pid(), CASE WHEN current_setting('synchronous_commit') = 'off'
       THEN set_config('synchronous_commit', 'on', false) END;

-- name: workspaces
-- Jumps from one workspace to the next, so that no table is read. Includes workspaces with rows but no event: the
-- doctor reports those.
WITH RECURSIVE found (name) AS (
    SELECT '' COLLATE "C"
    UNION ALL
    SELECT (SELECT min(next) FROM (
        SELECT min(workspace) AS next FROM event WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM task WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM run WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM entry WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM retired WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM message WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM breaker WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM card WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM cooling WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM used_key WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM ask WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM gap WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM blob WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM artifact WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM lease WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM hold WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM meter WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM question WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM schedule WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM hook WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM access WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM secret WHERE workspace > found.name
    ) AS each) FROM found WHERE found.name IS NOT NULL
)
SELECT name FROM found WHERE name <> '';

-- name: opens
-- The workspace that a caller's key opens: the one read by something else than the name of a workspace.
SELECT workspace FROM access WHERE id = :access LIMIT 2;

-- name: opens_apart
-- The same for a role that row-level security confines.
SELECT opened_by FROM opened_by(:access);

-- name: workspaces_apart
SELECT workspaces FROM workspaces();

-- name: is_confined
-- Whether row-level security applies to this user once it is on: not to the owner of the tables, and not to superusers.
SELECT NOT (r.rolsuper OR r.rolbypassrls OR pg_has_role(current_user, c.relowner, 'USAGE'))
FROM pg_roles r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE r.rolname = current_user AND n.nspname = 'remit' AND c.relname = 'event';

-- name: confine
-- The workspaces of this transaction, with line breaks between them: other rows do not exist for it.
SELECT set_config('remit.workspaces', :workspaces, true);

-- name: secure
SELECT secure(:role);

-- name: secure_again
-- Tables that a migration has just made are secured like the others, if those are.
SELECT secure('') WHERE EXISTS (
    SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'remit' AND c.relrowsecurity
);

-- name: faults
SELECT 'the server found ' || checksum_failures || ' damaged pages' FROM pg_stat_database
WHERE datname = current_database() AND checksum_failures > 0
UNION ALL
SELECT 'index ' || c.relname || ' is not valid; REINDEX it' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'remit'::regnamespace AND NOT i.indisvalid
UNION ALL
SELECT 'table ' || c.relname || ' has no row-level security, and others have; run `remit db secure`'
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace' AND NOT a.attisdropped
WHERE c.relnamespace = 'remit'::regnamespace AND c.relkind = 'r'
  AND NOT (c.relrowsecurity AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))
  AND EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = 'remit'::regnamespace AND o.relrowsecurity);

-- name: state
-- The state of the schema: the number of tables, whether the version table and those of procrastinate are among them,
-- and the encoding. Reads the catalogue directly, because the lookup of names uses a cache that may be stale.
SELECT count(*), count(*) FILTER (WHERE c.relname = 'version') > 0,
       count(*) FILTER (WHERE c.relname = 'procrastinate_jobs') > 0, current_setting('server_encoding')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'remit' AND c.relkind = 'r';

-- name: version
SELECT number FROM remit.version;

-- name: migrating
-- If two processes start at once, the second waits and finds the work done.
SELECT pg_advisory_xact_lock(:key);

-- name: schema
CREATE SCHEMA IF NOT EXISTS remit;

-- name: path
-- For migrations, whatever the session setting: our tables must not be created in another schema.
SET LOCAL search_path = remit, pg_temp;

-- name: number
CREATE TABLE IF NOT EXISTS remit.version (number bigint NOT NULL);

-- name: renumber
WITH old AS (DELETE FROM remit.version) INSERT INTO remit.version (number) VALUES (:number);

-- name: analyze
-- Update the planner's statistics. The server does so by itself, but not in the first minutes.
ANALYZE event, task, run, entry, message, procrastinate_jobs, procrastinate_events;

-- name: strangers
-- Untrusted roles that could insert objects into our schema: owners of the schema or of objects in it, and roles that
-- may create objects there. Trusted are the user, its roles, the owner of the database, and superusers. A superuser
-- counts as a member of every role, so membership says nothing about it.
WITH able (role) AS (
    SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = 'remit'
    UNION
    SELECT a.grantee FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname = 'remit' AND a.privilege_type = 'CREATE'
    UNION
    SELECT c.relowner FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'remit'
    UNION
    SELECT p.proowner FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'remit'
)
SELECT CASE WHEN able.role = 0 THEN 'everyone' ELSE r.rolname END
FROM able LEFT JOIN pg_roles r ON r.oid = able.role
WHERE able.role = 0 OR NOT (
    r.rolsuper OR r.rolname = current_user
    OR pg_has_role(current_user, able.role, 'MEMBER') AND NOT (SELECT u.rolsuper FROM pg_roles u WHERE u.rolname = current_user)
    OR able.role = (SELECT d.datdba FROM pg_database d WHERE d.datname = current_database())
)
ORDER BY 1;

-- name: may_create
SELECT has_database_privilege(current_database(), 'CREATE') AND NOT pg_is_in_recovery();

-- name: procrastinate_functions
SELECT proname FROM pg_proc WHERE pronamespace = 'remit'::regnamespace AND left(proname, 13) = 'procrastinate';

-- name: scratch
CREATE SCHEMA remit_scratch;

-- name: scratch_path
SET LOCAL search_path = remit_scratch, pg_temp;

-- name: way_of_writing
-- Settings that change the text of the catalogue.
SELECT concat_ws(' ', current_setting('server_version'), current_setting('quote_all_identifiers'));

-- name: catalogue
-- The content of a schema as text, without the part of procrastinate. The schema is looked up once, not for each row
-- of the catalogue.
WITH ours AS MATERIALIZED (SELECT n.oid FROM pg_namespace n WHERE n.nspname = current_schema())
SELECT 'column ' || c.relname || '.' || a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END, l.collname)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE c.relnamespace = (SELECT oid FROM ours) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
  AND left(c.relname, 13) <> 'procrastinate'
UNION ALL
SELECT 'index ' || i.relname, pg_get_indexdef(x.indexrelid)
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
WHERE c.relnamespace = (SELECT oid FROM ours) AND left(c.relname, 13) <> 'procrastinate'
UNION ALL
SELECT 'constraint ' || c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE c.relnamespace = (SELECT oid FROM ours) AND k.contype IN ('c', 'f', 'p', 'u', 'x')
  AND left(c.relname, 13) <> 'procrastinate'
UNION ALL
SELECT 'trigger ' || c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = (SELECT oid FROM ours) AND NOT t.tgisinternal AND left(c.relname, 13) <> 'procrastinate'
UNION ALL
SELECT 'rule ' || c.relname || '.' || r.rulename, pg_get_ruledef(r.oid)
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
WHERE c.relnamespace = (SELECT oid FROM ours) AND left(c.relname, 13) <> 'procrastinate'
UNION ALL
SELECT 'function ' || p.proname, pg_get_functiondef(p.oid)
FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM ours) AND left(p.proname, 13) <> 'procrastinate';

-- name: tasks_of_worker
-- Uses the index of open tasks, which the planner does not find for a list of states.
SELECT @task
FROM task WHERE workspace = :workspace AND worker = :worker AND worker > '' AND ended IS NULL
ORDER BY began;

-- name: working
-- Subtasks of a waiting task are found from that task: with a join, the planner would read all open tasks.
WITH RECURSIVE tree (root, id, state) AS (
    SELECT id, id, state FROM task
    WHERE workspace = :workspace AND asked_how <> 'delegate' AND (state = 'running' OR state = 'waiting')
    UNION ALL
    SELECT tree.root, below.id, below.state FROM tree CROSS JOIN LATERAL (
        SELECT c.id, c.state FROM task c
        WHERE c.workspace = :workspace AND c.parent = tree.id AND c.parent <> '' AND c.ended IS NULL
          AND c.asked_how = 'delegate' AND tree.state <> 'running'
        OFFSET 0
    ) AS below
)
SELECT count(DISTINCT root) FROM tree WHERE state = 'running';

-- name: unseen
-- Jumps from worker to worker, so that a long queue of unclaimed tasks is not read.
WITH RECURSIVE holding (workspace, worker) AS (
    SELECT a.workspace, (SELECT min(t.worker) FROM task t
                         WHERE t.workspace = a.workspace AND t.ended IS NULL AND t.worker > '')
    FROM (SELECT :workspace::text COLLATE "C" AS workspace) a
    UNION ALL
    SELECT h.workspace, (SELECT min(t.worker) FROM task t
                         WHERE t.workspace = h.workspace AND t.ended IS NULL AND t.worker > h.worker)
    FROM holding h WHERE h.worker IS NOT NULL
)
SELECT h.worker FROM holding h
WHERE h.worker IS NOT NULL
  AND (SELECT w.id FROM worker w WHERE w.workspace = h.workspace AND w.id = h.worker) IS NULL;

-- name: runs_of
SELECT t.id, e.agent, t.led_as, r.members, r.tasks, r.handoffs, r.tokens, r.refusals, r.credits, r.requests
FROM json_array_elements_text(:ids::json) page (id) JOIN task t ON t.workspace = :workspace AND t.id = page.id
JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
LEFT JOIN run r ON r.workspace = t.workspace AND r.id = t.id;

-- name: vitals_tasks
WITH RECURSIVE tree (run, level, id, state, worker, is_open) AS (
    SELECT t.id, 1, t.id, t.state, t.worker, t.ended IS NULL
    FROM json_array_elements_text(:ids::json) page (id) JOIN task t ON t.workspace = :workspace AND t.id = page.id
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
-- The sum keeps PostgreSQL from reading the journal backwards until it meets the run.
SELECT page.id, (SELECT count(*) FROM question q
                 WHERE q.workspace = :workspace AND q.run = page.id AND q.state = 'open'),
       (SELECT e.at FROM event e WHERE e.workspace = :workspace AND e.run = page.id AND e.run <> ''
        ORDER BY e.seq + 0 DESC LIMIT 1)
FROM json_array_elements_text(:ids::json) page (id);

-- name: vitals_leases
SELECT l.id, l.granted FROM json_array_elements_text(:ids::json) page (id)
JOIN lease l ON l.workspace = :workspace AND l.id = page.id AND l.unit = 'credits';

-- name: vitals_ended
SELECT t.id, e.data FROM json_array_elements_text(:ids::json) page (id)
JOIN task t ON t.workspace = :workspace AND t.id = page.id AND t.purse <> ''
JOIN event e ON e.workspace = t.workspace AND e.seq = t.ended;

-- name: server_time
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: contents
-- What is stored, with the size of each. The parts themselves are not read.
SELECT digest, sum(octet_length(data)) FROM content WHERE workspace = :workspace GROUP BY digest ORDER BY digest;

-- name: content
SELECT data FROM content WHERE workspace = :workspace AND digest = :digest AND part = :part;

-- name: content_add
-- Another process may store the same content; then this waits for its commit, and the part is there.
INSERT INTO content (workspace, digest, part, data) VALUES (:workspace, :digest, :part, :data)
ON CONFLICT DO NOTHING;

-- name: content_drop
DELETE FROM content WHERE workspace = :workspace AND digest = :digest;

-- name: contents_lock
SELECT pg_advisory_lock_shared(:key);

-- name: contents_lock_alone
SELECT pg_try_advisory_lock(:key);

-- name: tables_apart
-- The tables with rows of workspaces, their columns, and those of their keys after the workspace. The contents of
-- artifacts are copied in another way.
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attname), coalesce((
    SELECT array_agg(k.attname::text ORDER BY at.place) FROM pg_index i
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS at (number, place)
    JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = at.number
    WHERE i.indrelid = c.oid AND i.indisprimary AND k.attname <> 'workspace'
), '{}')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'remit'::regnamespace AND c.relkind = 'r' AND c.relname <> 'content'
GROUP BY c.oid, c.relname HAVING bool_or(a.attname = 'workspace') ORDER BY 1;

-- name: jobs_later
-- A job is due when its task is, by the server's clock: that much later than now, which is our time.
UPDATE procrastinate_jobs j
SET scheduled_at = clock_timestamp() + greatest(0, t.ready_at - :now) * interval '1 microsecond'
FROM task t WHERE t.workspace = :workspace AND t.state = 'pending' AND t.ready_at > 0
  AND j.queueing_lock = job_place(t.workspace, t.id) AND j.status = 'todo';

-- name: jobs_gone
DELETE FROM procrastinate_jobs WHERE queue_name = :queue AND status = 'todo'
  AND NOT EXISTS (SELECT FROM task WHERE workspace = :workspace AND state = 'pending');
