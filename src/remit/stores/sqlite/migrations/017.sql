-- Figures of the journal, rolled up: `data` is what an agent did in the hour or the day that began at `start`, told by
-- events from `first` to `last`. Derived, like all tables, but not with each event: it is brought up to date now and then.
CREATE TABLE tally (
    workspace TEXT NOT NULL,
    width     INTEGER NOT NULL CHECK (width > 0),
    start     INTEGER NOT NULL,
    agent     TEXT NOT NULL,
    first     INTEGER NOT NULL CHECK (first > 0),
    last      INTEGER NOT NULL CHECK (last >= first),
    data      TEXT NOT NULL,
    PRIMARY KEY (workspace, width, start, agent)
) STRICT, WITHOUT ROWID;

-- What has to be remembered of a task until it ends; `state` is that of a run, and empty for all other tasks.
CREATE TABLE tally_task (
    workspace TEXT NOT NULL,
    task      TEXT NOT NULL,
    state     TEXT NOT NULL,
    at        INTEGER NOT NULL,
    agent     TEXT NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (workspace, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX tally_task_run ON tally_task (workspace, at) WHERE state <> '';

-- Up to which event all of this counts.
CREATE TABLE tally_mark (
    workspace TEXT PRIMARY KEY NOT NULL,
    seq       INTEGER NOT NULL CHECK (seq > 0)
) STRICT, WITHOUT ROWID;

-- What the planner should expect: years of hours, a few agents in each; of tasks only those that are open.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('tally', 'tally', '100000 100000 50000 10 1'),
    ('tally_task', 'tally_task', '10000 10000 1'),
    ('tally_task', 'tally_task_run', '5000 5000 1');
ANALYZE sqlite_schema;
