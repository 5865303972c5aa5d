-- Entries of the shared context.

-- name: entry_put
INSERT INTO entry (workspace, @entry)
VALUES (:workspace, :@entry)
ON CONFLICT (workspace, namespace, key) DO UPDATE SET
    @set.entry;

-- name: entry_touch
UPDATE entry SET expires_at = :expires_at
WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: entry_drop
DELETE FROM entry WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: entry
SELECT @entry
FROM entry WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: entries_recent
SELECT @entry
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND (expires_at IS NULL OR expires_at > :now)
ORDER BY updated_at DESC, key LIMIT :limit;

-- name: entries_recent_from
-- A prefix is the range of keys from `start` up to, but not including, `stop`; never a pattern.
SELECT @entry
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND key >= :start AND key < :stop
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY updated_at DESC, key LIMIT :limit;

-- name: entries_by_key
SELECT @entry
FROM entry
WHERE workspace = :workspace AND namespace = :namespace AND key >= :start AND key < :stop
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY key LIMIT :limit;

-- name: expired
SELECT namespace, key, version FROM entry
WHERE workspace = :workspace AND expires_at IS NOT NULL AND expires_at <= :now
ORDER BY expires_at LIMIT :limit;

-- name: namespaces
SELECT namespace, count(*) FROM entry
WHERE workspace = :workspace AND (expires_at IS NULL OR expires_at > :now)
GROUP BY namespace ORDER BY namespace;

-- name: retired_put
INSERT INTO retired (workspace, @retired)
VALUES (:workspace, :@retired)
ON CONFLICT (workspace, namespace, key) DO UPDATE SET
    @set.retired;

-- name: retired_drop
DELETE FROM retired WHERE workspace = :workspace AND namespace = :namespace AND key = :key;

-- name: retired
-- The retired version of this address, and the floor for all others.
SELECT namespace, version FROM retired WHERE workspace = :workspace AND namespace = :namespace AND key = :key
UNION ALL
SELECT namespace, version FROM retired WHERE workspace = :workspace AND namespace = '' AND key = '*';

-- name: retired_page
SELECT @retired
FROM retired WHERE workspace = :workspace AND (namespace, key) > (:namespace, :key)
ORDER BY namespace, key LIMIT :limit;

-- name: entry_page
-- All rows, page by page, for the doctor.
SELECT @entry
FROM entry WHERE workspace = :workspace AND (namespace, key) > (:namespace, :key)
ORDER BY namespace, key LIMIT :limit;
