-- Chapters of the journal: for about a thousand events in a row, when they happened, whose they are and of which kinds.
-- Whoever looks for a time, an agent or a kind skips the chapters that have none of it. An index on every event would
-- answer too, and cost every event a page; a chapter is written once in a thousand events.
CREATE TABLE chapter (
    workspace TEXT NOT NULL,
    first     INTEGER NOT NULL CHECK (first > 0),
    last      INTEGER NOT NULL CHECK (last >= first),
    earliest  INTEGER NOT NULL,
    latest    INTEGER NOT NULL,
    agents    TEXT NOT NULL,
    kinds     TEXT NOT NULL,
    PRIMARY KEY (workspace, last)
) STRICT, WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('chapter', 'chapter', '100000 100000 1');
ANALYZE sqlite_schema;
