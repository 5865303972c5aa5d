-- Hooks: addresses outside that are sent events of the workspace.

-- name: hook_put
INSERT INTO hook (workspace, @hook)
VALUES (:workspace, :@hook)
ON CONFLICT (workspace, id) DO UPDATE SET
    @set.hook;

-- name: hook_set
UPDATE hook SET generation = :generation, rotated_at = :rotated_at, moved = :moved
WHERE workspace = :workspace AND id = :id;

-- name: hook_drop
DELETE FROM hook WHERE workspace = :workspace AND id = :id;

-- name: hook
SELECT @hook FROM hook WHERE workspace = :workspace AND id = :hook;

-- name: hooks
SELECT @hook FROM hook WHERE workspace = :workspace ORDER BY id;

-- name: hook_page
SELECT @hook FROM hook WHERE workspace = :workspace AND id > :id ORDER BY id LIMIT :limit;
