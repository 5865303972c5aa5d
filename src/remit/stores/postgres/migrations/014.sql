-- Which task one was tried again for: what that one and the others of its lineage finished is found by it.
ALTER TABLE task ADD COLUMN origin text COLLATE "C" NOT NULL DEFAULT '';
UPDATE task SET origin = coalesce((SELECT e.data::json ->> 'origin' FROM event e
                                   WHERE e.workspace = task.workspace AND e.seq = task.began AND e.data <> ''), '')
WHERE substr(dedup_key, 1, 6) = 'again/';
CREATE INDEX task_origin ON task (workspace, origin) WHERE origin <> '';
