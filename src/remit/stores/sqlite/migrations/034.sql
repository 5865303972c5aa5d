-- Access: the keys of callers from outside. Only a digest of a key is stored. An id leads to its workspace.
CREATE TABLE access (
    workspace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    digest     TEXT NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    agent      TEXT NOT NULL,
    bounds     TEXT NOT NULL,
    expires_at INTEGER,
    made_at    INTEGER NOT NULL,
    made_by    TEXT NOT NULL,
    revoked_at INTEGER,
    revoked_by TEXT NOT NULL,
    used_at    INTEGER,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX access_id ON access (id, workspace);
