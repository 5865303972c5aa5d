-- Models and keys that have failed of late, and until when they rest.
CREATE TABLE cooling (
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    failures  INTEGER NOT NULL CHECK (failures > 0),
    until     INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    used      INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;
