-- The keys of callers from outside. A row follows from the journal, except `used_at`, which is no history.

-- name: access_add
INSERT INTO access (workspace, @access)
VALUES (:workspace, :@access);

-- name: access_revoke
UPDATE access SET revoked_at = :revoked_at, revoked_by = :revoked_by WHERE workspace = :workspace AND id = :id;

-- name: access_used
UPDATE access SET used_at = :used_at WHERE workspace = :workspace AND id = :id;

-- name: access
SELECT @access, used_at FROM access WHERE workspace = :workspace AND id = :access;

-- name: accesses
SELECT @access, used_at FROM access WHERE workspace = :workspace ORDER BY id;

-- name: access_page
SELECT @access FROM access WHERE workspace = :workspace AND id > :id ORDER BY id LIMIT :limit;
