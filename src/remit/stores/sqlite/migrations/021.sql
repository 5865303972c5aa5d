-- A workspace's own keys, sealed by a vault whose master keys are not in here. They are no part of the journal, which
-- is for ever: what is replaced or removed has to be gone.
CREATE TABLE secret (
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    key_id    TEXT NOT NULL,
    sealed    TEXT NOT NULL,
    set_at    INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;
