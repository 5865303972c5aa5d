-- The journal is the truth; the other tables are what it says, laid out for looking up.

CREATE TABLE event (
    workspace TEXT NOT NULL,
    seq       INTEGER NOT NULL CHECK (seq > 0),
    kind      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    run       TEXT NOT NULL,
    session   TEXT NOT NULL,
    task      TEXT NOT NULL,
    agent     TEXT NOT NULL,
    data      TEXT NOT NULL,
    op        TEXT,
    answer    TEXT,
    hash      TEXT NOT NULL,
    PRIMARY KEY (workspace, seq)
) STRICT, WITHOUT ROWID;

-- An operation id is used once: the second time finds the first one's answer.
CREATE UNIQUE INDEX event_op ON event (workspace, op) WHERE op IS NOT NULL;
CREATE INDEX event_run ON event (workspace, run) WHERE run <> '';

CREATE TABLE task (
    workspace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    run        TEXT NOT NULL,
    parent     TEXT NOT NULL,
    session    TEXT NOT NULL,
    holder     TEXT NOT NULL,
    -- Spelled out: SQLite builds a small table for a list of more than two, each time it checks a row.
    status     TEXT NOT NULL CHECK (status = 'running' OR status = 'completed' OR status = 'failed' OR status = 'cancelled'),
    started_at INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    ended_at   INTEGER,
    began      INTEGER NOT NULL,
    ended      INTEGER,
    PRIMARY KEY (workspace, id),
    CHECK ((status = 'running') = (ended IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX task_running ON task (workspace, holder, until) WHERE status = 'running';
CREATE INDEX task_root ON task (workspace, began) WHERE parent = '';
CREATE INDEX task_session ON task (workspace, session) WHERE parent = '';

CREATE TABLE entry (
    workspace  TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    key        TEXT NOT NULL,
    form       TEXT NOT NULL CHECK (form IN ('text', 'json')),
    value      TEXT NOT NULL,
    agent      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    version    INTEGER NOT NULL CHECK (version > 0),
    digest     TEXT NOT NULL,
    extension  INTEGER,
    trust      TEXT NOT NULL CHECK (trust IN ('inside', 'outside')),
    task       TEXT NOT NULL,
    chain      TEXT NOT NULL,
    PRIMARY KEY (workspace, namespace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX entry_recent ON entry (workspace, namespace, updated_at);
CREATE INDEX entry_expiry ON entry (workspace, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE message (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    session   TEXT NOT NULL,
    sender    TEXT NOT NULL,
    recipient TEXT NOT NULL,
    text      TEXT NOT NULL,
    sent_at   INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    taken_at  INTEGER,
    taken_by  TEXT,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX message_waiting ON message (workspace, session, recipient, seq) WHERE taken_at IS NULL;
