-- A workspace's own keys, encrypted. They are not history: a replaced or removed key is erased, and no event contains
-- it.

-- name: secret_put
INSERT INTO secret (workspace, name, key_id, sealed, set_at) VALUES (:workspace, :name, :key_id, :sealed, :set_at)
ON CONFLICT (workspace, name) DO UPDATE SET
    key_id = excluded.key_id, sealed = excluded.sealed, set_at = excluded.set_at;

-- name: secret_drop
DELETE FROM secret WHERE workspace = :workspace AND name = :name;

-- name: secret
SELECT name, key_id, sealed, set_at FROM secret WHERE workspace = :workspace AND name = :key;

-- name: secrets
SELECT name, key_id, set_at FROM secret WHERE workspace = :workspace ORDER BY name;
