-- Every query remit runs, by name. All of them name the workspace; a test makes sure of it.

-- name: head
-- Where the journal ends: the next event continues from here.
SELECT seq, hash FROM event WHERE workspace = :workspace ORDER BY seq DESC LIMIT 1;

-- name: answer_of
-- What an operation answered the first time; no row if it has not happened.
SELECT answer FROM event WHERE workspace = :workspace AND op = :op;

-- name: append
-- The one way into the journal. An operation that has been done before adds no row, and so is found out.
INSERT INTO event (workspace, seq, kind, at, run, session, task, agent, data, op, answer, hash)
VALUES (:workspace, :seq, :kind, :at, :run, :session, :task, :agent, :data, :op, :answer, :hash)
ON CONFLICT DO NOTHING;

-- name: task_add
INSERT INTO task (workspace, id, run, parent, session, holder, status, started_at, until, ended_at, began, ended)
VALUES (:workspace, :id, :run, :parent, :session, :holder, :status, :started_at, :until, :ended_at, :began, :ended);

-- name: task_end
-- Terminal is final: only a running task ends.
UPDATE task SET status = :status, ended_at = :ended_at, ended = :ended
WHERE workspace = :workspace AND id = :id AND status = 'running';

-- name: task_hand
UPDATE task SET holder = :holder WHERE workspace = :workspace AND id = :id AND status = 'running';

-- name: breaker_put
INSERT INTO breaker (workspace, name, state, failures, until, probe, why, at)
VALUES (:workspace, :name, :state, :failures, :until, :probe, :why, :at)
ON CONFLICT (workspace, name) DO UPDATE SET
    state = excluded.state, failures = excluded.failures, until = excluded.until, probe = excluded.probe,
    why = excluded.why, at = excluded.at;

-- name: breaker
SELECT state, failures, until, probe, why FROM breaker WHERE workspace = :workspace AND name = :name;

-- name: breakers
SELECT name, state, failures, until, probe, why, at FROM breaker WHERE workspace = :workspace ORDER BY name;

-- name: entry_put
INSERT INTO entry (workspace, namespace, key, form, value, agent, created_at, updated_at, expires_at,
                   version, digest, extension, trust, task, chain)
VALUES (:workspace, :namespace, :key, :form, :value, :agent, :created_at, :updated_at, :expires_at,
        :version, :digest, :extension, :trust, :task, :chain)
ON CONFLICT (workspace, namespace, key) DO UPDATE SET
    form = excluded.form, value = excluded.value, agent = excluded.agent, created_at = excluded.created_at,
    updated_at = excluded.updated_at, expires_at = excluded.expires_at, version = excluded.version,
    digest = excluded.digest, extension = excluded.extension, trust = excluded.trust, task = excluded.task,
    chain = excluded.chain;

-- name: entry_touch
UPDATE entry SET expires_at = :expires_at
WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: entry_drop
DELETE FROM entry WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: message_add
INSERT INTO message (workspace, id, session, sender, recipient, text, sent_at, seq, taken_at, taken_by)
VALUES (:workspace, :id, :session, :sender, :recipient, :text, :sent_at, :seq, :taken_at, :taken_by);

-- name: message_take
-- Delivered once: what is taken stays taken.
UPDATE message SET taken_at = :taken_at, taken_by = :taken_by
WHERE workspace = :workspace AND id = :id AND taken_at IS NULL;

-- name: status
SELECT status FROM task WHERE workspace = :workspace AND id = :task;

-- name: record
SELECT id, run, parent, session, holder, status, started_at, until, ended_at, began, ended
FROM task WHERE workspace = :workspace AND id = :task;

-- name: running
-- A task left behind by a dead process stops counting when its time is up.
SELECT count(*) FROM task
WHERE workspace = :workspace AND holder = :holder AND status = 'running' AND until > :now;

-- name: runs
-- The newest runs first, each with the number of tasks and refusals in it.
SELECT t.id, t.run, t.parent, t.session, t.holder, t.status, t.started_at, t.until, t.ended_at, t.began, t.ended,
       e.data,
       (SELECT count(*) FROM event c WHERE c.workspace = t.workspace AND c.run = t.id AND c.run <> '' AND c.kind = 'task.started'),
       (SELECT count(*) FROM event c WHERE c.workspace = t.workspace AND c.run = t.id AND c.run <> '' AND c.kind = 'hop.refused')
FROM task t JOIN event e ON e.workspace = t.workspace AND e.seq = t.began
WHERE t.workspace = :workspace AND t.parent = ''
ORDER BY t.began DESC LIMIT :limit;

-- name: ids_like
-- Ids that begin with what a person typed.
SELECT id FROM task WHERE workspace = :workspace AND id >= :start AND id < :stop ORDER BY id LIMIT :limit;

-- name: entry
SELECT namespace, key, form, value, agent, created_at, updated_at, expires_at, version, digest, extension, trust, task, chain
FROM entry WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: entries_recent
SELECT namespace, key, form, value, agent, created_at, updated_at, expires_at, version, digest, extension, trust, task, chain
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND (expires_at IS NULL OR expires_at > :now)
ORDER BY updated_at DESC, key LIMIT :limit;

-- name: entries_recent_from
-- A prefix is a range of keys from `start` up to but not including `stop`; never a pattern.
SELECT namespace, key, form, value, agent, created_at, updated_at, expires_at, version, digest, extension, trust, task, chain
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND key >= :start AND key < :stop
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY updated_at DESC, key LIMIT :limit;

-- name: entries_by_key
SELECT namespace, key, form, value, agent, created_at, updated_at, expires_at, version, digest, extension, trust, task, chain
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
SELECT id, session, sender, recipient, text, sent_at FROM message
WHERE workspace = :workspace AND session = :session AND recipient = :agent AND taken_at IS NULL
ORDER BY seq LIMIT :limit;

-- name: events
SELECT workspace, seq, kind, at, run, session, task, agent, data, op, answer, hash FROM event
WHERE workspace = :workspace AND seq > :after AND at >= :since AND at < :until
ORDER BY seq LIMIT :limit;

-- name: events_of_run
SELECT workspace, seq, kind, at, run, session, task, agent, data, op, answer, hash FROM event
WHERE workspace = :workspace AND run = :run AND run <> '' AND seq > :after AND at >= :since AND at < :until
ORDER BY seq LIMIT :limit;

-- name: events_of_session
-- Through the session's runs: a session has few of them, and an index on every event would cost every event.
SELECT workspace, seq, kind, at, run, session, task, agent, data, op, answer, hash FROM event
WHERE workspace = :workspace AND session = :session AND run <> ''
  AND run IN (SELECT id FROM task WHERE workspace = :workspace AND session = :session AND parent = '')
  AND seq > :after AND at >= :since AND at < :until
ORDER BY seq LIMIT :limit;

-- name: all_tasks
SELECT id, run, parent, session, holder, status, started_at, until, ended_at, began, ended
FROM task WHERE workspace = :workspace;

-- name: all_entries
SELECT namespace, key, form, value, agent, created_at, updated_at, expires_at, version, digest, extension, trust, task, chain
FROM entry WHERE workspace = :workspace;

-- name: all_messages
SELECT id, session, sender, recipient, text, sent_at, seq, taken_at, taken_by
FROM message WHERE workspace = :workspace;
