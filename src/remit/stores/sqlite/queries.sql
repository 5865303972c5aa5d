-- Named statements for a database in memory only; all others are in sql/. Together they evict old data: everything
-- written between two positions of the journal, except that of kept runs, which are given as a JSON list.

-- name: open_runs
-- Runs with open tasks, and runs whose work an open retry may still need.
WITH unfinished (run, origin) AS (
    SELECT run, origin FROM task
    WHERE workspace = :workspace AND (state = 'pending' OR state = 'running' OR state = 'waiting' OR state = 'cancelling')
)
SELECT run FROM unfinished
UNION
SELECT o.run FROM unfinished u JOIN task o ON o.workspace = :workspace AND o.origin = u.origin AND o.origin <> ''
WHERE u.origin <> ''
UNION
SELECT o.run FROM unfinished u JOIN task o ON o.workspace = :workspace AND o.id = u.origin
WHERE u.origin <> '';

-- name: ended_later
-- Runs with a task that started in the range and ended after a later position.
SELECT DISTINCT run FROM task
WHERE workspace = :workspace AND began > :after AND began <= :upto AND (ended IS NULL OR ended > :later);

-- name: forget_keys
-- Idempotency keys outlive their tasks; the final state is stored with the key.
UPDATE used_key SET state = t.state, ended_at = t.ended_at FROM task t
WHERE used_key.workspace = :workspace AND t.workspace = :workspace AND used_key.task = t.id
  AND t.began > :after AND t.began <= :upto AND t.dedup_key <> ''
  AND t.run NOT IN (SELECT value FROM json_each(:kept));

-- name: forget_messages
DELETE FROM message WHERE workspace = :workspace AND id IN (
    SELECT json_extract(e.data, '$.id') FROM event e
    WHERE e.workspace = :workspace AND e.seq > :after AND e.seq <= :upto AND e.kind = 'message.sent'
      AND e.run NOT IN (SELECT value FROM json_each(:kept)) AND e.run <> ''
);

-- name: forget_questions
DELETE FROM question WHERE workspace = :workspace AND asked > :after AND asked <= :upto
  AND run NOT IN (SELECT value FROM json_each(:kept));

-- name: forget_figures
DELETE FROM run WHERE workspace = :workspace AND id IN (
    SELECT t.id FROM task t
    WHERE t.workspace = :workspace AND t.began > :after AND t.began <= :upto AND t.parent = ''
      AND t.run NOT IN (SELECT value FROM json_each(:kept))
);

-- name: forget_asks
DELETE FROM ask WHERE workspace = :workspace AND run IN (
    SELECT t.id FROM task t
    WHERE t.workspace = :workspace AND t.began > :after AND t.began <= :upto AND t.parent = ''
      AND t.run NOT IN (SELECT value FROM json_each(:kept))
);

-- name: used_ids
-- Ids of operations and tasks, of every workspace.
SELECT op FROM event WHERE op IS NOT NULL UNION ALL SELECT id FROM task;

-- name: forget_tasks
DELETE FROM task WHERE workspace = :workspace AND began > :after AND began <= :upto
  AND run NOT IN (SELECT value FROM json_each(:kept));

-- name: forget_events
DELETE FROM event WHERE workspace = :workspace AND seq > :after AND seq <= :upto
  AND run NOT IN (SELECT value FROM json_each(:kept));

-- name: forget_blobs
DELETE FROM blob WHERE workspace = :workspace AND seq > :after AND seq <= :upto
  AND NOT EXISTS (SELECT 1 FROM event e WHERE e.workspace = blob.workspace AND e.seq = blob.seq);

-- name: forget_artifacts
-- An entry that still stands keeps its artifacts, though its event is gone.
DELETE FROM artifact WHERE workspace = :workspace AND seq > :after AND seq <= :upto
  AND NOT EXISTS (SELECT 1 FROM event e WHERE e.workspace = artifact.workspace AND e.seq = artifact.seq)
  AND NOT EXISTS (SELECT 1 FROM entry n WHERE n.workspace = artifact.workspace AND n.namespace = artifact.namespace
                  AND n.key = artifact.key AND n.updated_at = artifact.at);

-- name: forget_chapters
-- Kept events of these chapters are then read without a chapter.
DELETE FROM chapter WHERE workspace = :workspace AND last <= :upto;
