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
    state      TEXT NOT NULL,
    asked_how  TEXT NOT NULL,
    led_as     TEXT NOT NULL,
    worker     TEXT NOT NULL,
    fence      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    asked_at   INTEGER NOT NULL,
    ready_at   INTEGER NOT NULL,
    claimed_at INTEGER,
    until      INTEGER NOT NULL,
    ended_at   INTEGER,
    began      INTEGER NOT NULL,
    ended      INTEGER,
    dedup_key  TEXT NOT NULL,
    PRIMARY KEY (workspace, id),
    -- Spelled out: SQLite builds a small table for a list of more than two, each time it checks a row.
    CHECK ((ended IS NULL) = (state = 'pending' OR state = 'running' OR state = 'waiting' OR state = 'cancelling')),
    CHECK (ended IS NULL OR state = 'completed' OR state = 'failed' OR state = 'cancelled' OR state = 'dead')
) STRICT, WITHOUT ROWID;

CREATE INDEX task_running ON task (workspace, holder, until) WHERE state = 'running';
CREATE INDEX task_pending ON task (workspace, holder, began) WHERE state = 'pending';
CREATE INDEX task_resuming ON task (workspace, holder) WHERE state = 'pending' AND worker <> '';
CREATE INDEX task_waiting ON task (workspace, worker) WHERE state = 'waiting';
CREATE INDEX task_cancelling ON task (workspace, worker) WHERE state = 'cancelling';
CREATE INDEX task_parent ON task (workspace, parent) WHERE parent <> '';
CREATE INDEX task_root ON task (workspace, began) WHERE parent = '';
-- For lists page by page. It grows at its end only, which costs a task less than half a microsecond.
CREATE INDEX task_began ON task (workspace, began);
CREATE INDEX task_session ON task (workspace, session) WHERE parent = '';
CREATE INDEX task_dedup_key ON task (workspace, dedup_key) WHERE dedup_key <> '';

-- What a whole run has come to besides its root. Guards read it at every hop, so it is counted as events are written.
CREATE TABLE run (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    members   TEXT NOT NULL,
    tasks     INTEGER NOT NULL,
    handoffs  INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    refusals  INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

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
    trust      TEXT NOT NULL CHECK (trust IN ('trusted', 'untrusted')),
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
    reader    TEXT NOT NULL,
    about     TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX message_waiting ON message (workspace, session, recipient, seq) WHERE taken_at IS NULL;

-- Circuit breakers: one for each agent that has failed of late.
CREATE TABLE breaker (
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    state     TEXT NOT NULL CHECK (state = 'closed' OR state = 'open' OR state = 'half-open'),
    failures  INTEGER NOT NULL CHECK (failures >= 0),
    until     INTEGER NOT NULL,
    probe     TEXT NOT NULL,
    why       TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

-- The agents that processes have published, for those that did not import the team.
CREATE TABLE card (
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    data      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

-- Not history: who says that it is there.
CREATE TABLE worker (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    home      TEXT NOT NULL,
    count     INTEGER NOT NULL,
    hands     INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- What the planner should expect: every workspace has many rows, so knowing the workspace narrows nothing down. Without
-- this it reads a whole workspace rather than use an index made for the question. Of tasks there are more than the million
-- rows that it expects of any recursive query: otherwise it would read all of them to make a Bloom filter, in order to
-- follow a tree of five. And reading a whole workspace is cheapest by the primary key.
ANALYZE;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('event', 'event', '100000000 100000000 1'),
    ('event', 'event_op', '100000000 100000000 1'),
    ('event', 'event_run', '100000000 100000000 10'),
    ('task', 'task', '10000000 9000000 1'),
    ('task', 'task_running', '1000 1000 100 1'),
    ('task', 'task_pending', '1000 1000 100 1'),
    ('task', 'task_resuming', '10 10 5'),
    ('task', 'task_waiting', '100 100 10'),
    ('task', 'task_cancelling', '10 10 5'),
    ('task', 'task_parent', '10000000 10000000 5'),
    ('task', 'task_root', '5000000 5000000 1'),
    ('task', 'task_began', '10000000 10000000 1'),
    ('task', 'task_session', '5000000 5000000 10'),
    ('task', 'task_dedup_key', '10000 10000 1'),
    ('run', 'run', '5000000 5000000 1'),
    ('entry', 'entry', '1000000 1000000 10000 1'),
    ('entry', 'entry_recent', '1000000 1000000 10000 1'),
    ('entry', 'entry_expiry', '100000 100000 10'),
    ('message', 'message', '100000 100000 1'),
    ('message', 'message_waiting', '1000 1000 100 10 1');
ANALYZE sqlite_schema;
