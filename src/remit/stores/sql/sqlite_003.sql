-- Tasks that outlive the process that asked for them: who has one, under which fence, and when it is due.

ALTER TABLE task RENAME TO task_before;
DROP INDEX task_running;
DROP INDEX task_root;
DROP INDEX task_session;

CREATE TABLE task (
    workspace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    run        TEXT NOT NULL,
    parent     TEXT NOT NULL,
    session    TEXT NOT NULL,
    holder     TEXT NOT NULL,
    status     TEXT NOT NULL,
    way        TEXT NOT NULL,
    lead       TEXT NOT NULL,
    worker     TEXT NOT NULL,
    fence      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    asked_at   INTEGER NOT NULL,
    ready_at   INTEGER NOT NULL,
    claimed_at INTEGER,
    until      INTEGER NOT NULL,
    ended_at   INTEGER,
    began      INTEGER NOT NULL,
    ended      INTEGER,
    twin       TEXT NOT NULL,
    PRIMARY KEY (workspace, id),
    -- Spelled out: SQLite builds a small table for a list of more than two, each time it checks a row.
    CHECK ((ended IS NULL) = (status = 'pending' OR status = 'running' OR status = 'waiting' OR status = 'cancelling')),
    CHECK (ended IS NULL OR status = 'completed' OR status = 'failed' OR status = 'cancelled' OR status = 'dead')
) STRICT, WITHOUT ROWID;

INSERT INTO task
SELECT workspace, id, run, parent, session, holder, status, 'delegate', '', '', 1, 1, 0,
       started_at, started_at, started_at, until, ended_at, began, ended, ''
FROM task_before;

DROP TABLE task_before;

CREATE INDEX task_running ON task (workspace, holder, until) WHERE status = 'running';
CREATE INDEX task_pending ON task (workspace, holder, began) WHERE status = 'pending';
CREATE INDEX task_resuming ON task (workspace, holder) WHERE status = 'pending' AND worker <> '';
CREATE INDEX task_waiting ON task (workspace, worker) WHERE status = 'waiting';
CREATE INDEX task_cancelling ON task (workspace, worker) WHERE status = 'cancelling';
CREATE INDEX task_parent ON task (workspace, parent) WHERE parent <> '';
CREATE INDEX task_root ON task (workspace, began) WHERE parent = '';
CREATE INDEX task_session ON task (workspace, session) WHERE parent = '';
CREATE INDEX task_twin ON task (workspace, twin) WHERE twin <> '';

ALTER TABLE message ADD COLUMN reader TEXT NOT NULL DEFAULT '';
ALTER TABLE message ADD COLUMN about TEXT NOT NULL DEFAULT '';

CREATE TABLE worker (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    home      TEXT NOT NULL,
    count     INTEGER NOT NULL,
    hands     INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- What the planner should expect: every workspace has many rows, so knowing the workspace narrows nothing down. Without
-- this it reads a whole workspace rather than use an index made for the question.
ANALYZE;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('event', 'event', '1000000 1000000 1'),
    ('event', 'event_op', '1000000 1000000 1'),
    ('event', 'event_run', '1000000 1000000 10'),
    ('task', 'task', '100000 100000 1'),
    ('task', 'task_running', '1000 1000 100 1'),
    ('task', 'task_pending', '1000 1000 100 1'),
    ('task', 'task_resuming', '10 10 5'),
    ('task', 'task_waiting', '100 100 10'),
    ('task', 'task_cancelling', '10 10 5'),
    ('task', 'task_parent', '100000 100000 5'),
    ('task', 'task_root', '50000 50000 1'),
    ('task', 'task_session', '50000 50000 10'),
    ('task', 'task_twin', '10000 10000 1'),
    ('entry', 'entry', '1000000 1000000 10000 1'),
    ('entry', 'entry_recent', '1000000 1000000 10000 1'),
    ('entry', 'entry_expiry', '100000 100000 10'),
    ('message', 'message', '100000 100000 1'),
    ('message', 'message_waiting', '1000 1000 100 10 1');
ANALYZE sqlite_schema;
