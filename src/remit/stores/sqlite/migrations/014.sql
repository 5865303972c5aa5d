-- Which task one was tried again for: what that one and the others of its lineage finished is found by it.
ALTER TABLE task ADD COLUMN origin TEXT NOT NULL DEFAULT '';
UPDATE task SET origin = coalesce((SELECT json_extract(e.data, '$.origin') FROM event e
                                   WHERE e.workspace = task.workspace AND e.seq = task.began AND e.data <> ''), '')
WHERE substr(dedup_key, 1, 6) = 'again/';
CREATE INDEX task_origin ON task (workspace, origin) WHERE origin <> '';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('task', 'task_origin', '100000 100000 2');
ANALYZE sqlite_schema;
