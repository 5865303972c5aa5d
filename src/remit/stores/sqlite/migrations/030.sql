-- The artifacts that events refer to: one row for each event and digest. The content is in files beside the store. It is
-- needed as long as a row has its digest.
CREATE TABLE artifact (
    workspace  TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    run        TEXT NOT NULL,
    task       TEXT NOT NULL,
    agent      TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    key        TEXT NOT NULL,
    size       INTEGER NOT NULL,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    trust      TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (workspace, seq, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_digest ON artifact (workspace, digest);
CREATE INDEX artifact_run ON artifact (workspace, run);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('artifact', 'artifact', '100000 100000 2 1'),
    ('artifact', 'artifact_digest', '100000 100000 2'),
    ('artifact', 'artifact_run', '100000 100000 20');
ANALYZE sqlite_schema;
