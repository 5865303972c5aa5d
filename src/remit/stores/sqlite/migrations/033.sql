-- Hooks: addresses outside that are sent events. Their secrets are derived, and in no table.
CREATE TABLE hook (
    workspace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    url        TEXT NOT NULL,
    kinds      TEXT NOT NULL,
    run        TEXT NOT NULL,
    generation INTEGER NOT NULL,
    rotated_at INTEGER,
    added_by   TEXT NOT NULL,
    added_at   INTEGER NOT NULL,
    began      INTEGER NOT NULL,
    moved      INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
