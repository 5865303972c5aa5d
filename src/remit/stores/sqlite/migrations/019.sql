-- Where events were removed that nothing needs any more: the first and the last number that is missing, the hash of the
-- last, from which the next event continues, and the event that states the gap.
CREATE TABLE gap (
    workspace TEXT NOT NULL,
    first     INTEGER NOT NULL CHECK (first > 0),
    last      INTEGER NOT NULL CHECK (last >= first),
    hash      TEXT NOT NULL,
    stated    INTEGER NOT NULL CHECK (stated > last),
    PRIMARY KEY (workspace, last)
) STRICT, WITHOUT ROWID;

CREATE INDEX gap_stated ON gap (workspace, stated);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('gap', 'gap', '100000 100000 1'),
    ('gap', 'gap_stated', '100000 100000 50 1');
ANALYZE sqlite_schema;
