-- The tables as the migrations leave them. A new store is made of these, in a quarter of the time.
-- `make docs` writes this file, after each new migration.
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
    dedup_key  TEXT NOT NULL, origin TEXT NOT NULL DEFAULT '', losses INTEGER NOT NULL DEFAULT 0, purse TEXT NOT NULL DEFAULT '', priority INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, id),
    -- Spelled out: SQLite builds a small table for a list of more than two, each time it checks a row.
    CHECK ((ended IS NULL) = (state = 'pending' OR state = 'running' OR state = 'waiting' OR state = 'cancelling')),
    CHECK (ended IS NULL OR state = 'completed' OR state = 'failed' OR state = 'cancelled' OR state = 'dead')
) STRICT, WITHOUT ROWID;

CREATE INDEX task_running ON task (workspace, holder, until) WHERE state = 'running';

CREATE INDEX task_resuming ON task (workspace, holder) WHERE state = 'pending' AND worker <> '';

CREATE INDEX task_waiting ON task (workspace, worker) WHERE state = 'waiting';

CREATE INDEX task_cancelling ON task (workspace, worker) WHERE state = 'cancelling';

CREATE INDEX task_parent ON task (workspace, parent) WHERE parent <> '';

CREATE INDEX task_root ON task (workspace, began) WHERE parent = '';

CREATE INDEX task_began ON task (workspace, began);

CREATE INDEX task_session ON task (workspace, session) WHERE parent = '';

CREATE INDEX task_dedup_key ON task (workspace, dedup_key) WHERE dedup_key <> '';

CREATE TABLE run (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    members   TEXT NOT NULL,
    tasks     INTEGER NOT NULL,
    handoffs  INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    refusals  INTEGER NOT NULL, credits INTEGER NOT NULL DEFAULT 0, requests INTEGER NOT NULL DEFAULT 0,
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
    about     TEXT NOT NULL, trust TEXT NOT NULL DEFAULT 'trusted' CHECK (trust IN ('trusted', 'untrusted')), run TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE card (
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    data      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    home      TEXT NOT NULL,
    count     INTEGER NOT NULL,
    hands     INTEGER NOT NULL, progress TEXT NOT NULL DEFAULT '', seen_at INTEGER NOT NULL DEFAULT 0, agents TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE retired (
    workspace TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    version   INTEGER NOT NULL CHECK (version > 0),
    PRIMARY KEY (workspace, namespace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX message_waiting ON message (workspace, run, recipient, seq) WHERE taken_at IS NULL AND reader = '';

CREATE INDEX message_told ON message (workspace, reader, seq) WHERE taken_at IS NULL AND reader <> '';

CREATE INDEX message_sent ON message (workspace, run, recipient, sender) WHERE taken_at IS NULL AND reader = '';

CREATE TABLE used_key (
    workspace TEXT NOT NULL,
    key       TEXT NOT NULL,
    task      TEXT NOT NULL,
    run       TEXT NOT NULL,
    content   TEXT NOT NULL,
    state     TEXT NOT NULL,
    ended_at  INTEGER,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX used_key_run ON used_key (workspace, run);

CREATE INDEX used_key_task ON used_key (workspace, task);

CREATE INDEX task_origin ON task (workspace, origin) WHERE origin <> '';

CREATE INDEX task_gone ON task (workspace, state, began)
    WHERE state = 'failed' OR state = 'cancelled' OR state = 'dead';

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

CREATE TABLE tally_mark (
    workspace TEXT PRIMARY KEY NOT NULL,
    seq       INTEGER NOT NULL CHECK (seq > 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_later ON task (workspace, ready_at) WHERE state = 'pending' AND ready_at > 0;

CREATE INDEX task_until ON task (workspace, until) WHERE state = 'pending';

CREATE TABLE gap (
    workspace TEXT NOT NULL,
    first     INTEGER NOT NULL CHECK (first > 0),
    last      INTEGER NOT NULL CHECK (last >= first),
    hash      TEXT NOT NULL,
    stated    INTEGER NOT NULL CHECK (stated > last),
    PRIMARY KEY (workspace, last)
) STRICT, WITHOUT ROWID;

CREATE INDEX gap_stated ON gap (workspace, stated);

CREATE TABLE lease (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    unit      TEXT NOT NULL CHECK (unit = 'credits' OR unit = 'tokens'),
    kind      TEXT NOT NULL CHECK (kind = 'account' OR kind = 'carve' OR kind = 'cap'),
    above     TEXT NOT NULL,
    granted   INTEGER NOT NULL CHECK (granted >= 0),
    available INTEGER NOT NULL CHECK (available >= 0),
    reserved  INTEGER NOT NULL CHECK (reserved >= 0),
    lent      INTEGER NOT NULL CHECK (lent >= 0),
    spent     INTEGER NOT NULL CHECK (spent >= 0),
    overrun   INTEGER NOT NULL CHECK (overrun >= 0),
    users     INTEGER NOT NULL CHECK (users >= 0),
    state     TEXT NOT NULL CHECK (state = 'open' OR state = 'closing' OR state = 'frozen'),
    PRIMARY KEY (workspace, id, unit),
    -- The second line of defence: whatever the code does, money is neither made nor lost.
    CHECK (available + reserved + lent + spent = granted)
) STRICT, WITHOUT ROWID;

CREATE TABLE hold (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    task      TEXT NOT NULL,
    run       TEXT NOT NULL,
    session   TEXT NOT NULL,
    agent     TEXT NOT NULL,
    fence     INTEGER NOT NULL,
    state     TEXT NOT NULL CHECK (state = 'held' OR state = 'started' OR state = 'uncertain'),
    credits   INTEGER NOT NULL CHECK (credits >= 0),
    tokens    INTEGER NOT NULL CHECK (tokens >= 0),
    purse     TEXT NOT NULL,
    until     INTEGER NOT NULL,
    hour      TEXT NOT NULL,
    why       TEXT NOT NULL,
    model     TEXT NOT NULL,
    own_key   TEXT NOT NULL, billed TEXT NOT NULL DEFAULT '', person TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hold_open ON hold (workspace, task) WHERE state <> 'uncertain';

CREATE INDEX hold_until ON hold (workspace, until) WHERE state = 'held';

CREATE INDEX hold_uncertain ON hold (workspace, run) WHERE state = 'uncertain';

CREATE TABLE meter (
    workspace TEXT NOT NULL,
    scope     TEXT NOT NULL,
    name      TEXT NOT NULL,
    unit      TEXT NOT NULL,
    hour      TEXT NOT NULL,
    spent     INTEGER NOT NULL,
    PRIMARY KEY (workspace, scope, name, unit, hour)
) STRICT, WITHOUT ROWID;

CREATE INDEX meter_hour ON meter (workspace, hour);

CREATE TABLE question (
    workspace TEXT NOT NULL,
    id        TEXT NOT NULL,
    run       TEXT NOT NULL,
    session   TEXT NOT NULL,
    task      TEXT NOT NULL,
    agent     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    digest    TEXT NOT NULL,
    asked_at  INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    state     TEXT NOT NULL,
    expires   TEXT NOT NULL,
    asked     INTEGER NOT NULL,
    answered  INTEGER,
    used      INTEGER NOT NULL CHECK (used = 0 OR used = 1),
    PRIMARY KEY (workspace, id),
    CHECK ((answered IS NULL) = (state = 'open'))
) STRICT, WITHOUT ROWID;

CREATE INDEX question_open ON question (workspace, run) WHERE state = 'open';

CREATE INDEX question_task ON question (workspace, task) WHERE state = 'open';

CREATE INDEX question_until ON question (workspace, until) WHERE state = 'open';

CREATE INDEX question_asked ON question (workspace, asked);

CREATE INDEX question_run ON question (workspace, run);

CREATE TABLE secret (
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    key_id    TEXT NOT NULL,
    sealed    TEXT NOT NULL,
    set_at    INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE blob (
    workspace TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    text      TEXT NOT NULL,
    PRIMARY KEY (workspace, seq)
) STRICT;

CREATE TABLE ask (
    workspace TEXT NOT NULL,
    run       TEXT NOT NULL,
    key       TEXT NOT NULL,
    times     INTEGER NOT NULL,
    in_vain   INTEGER NOT NULL,
    answers   TEXT NOT NULL,
    PRIMARY KEY (workspace, run, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX hold_disputed ON hold (workspace, agent) WHERE billed <> '';

CREATE TABLE chapter (
    workspace TEXT NOT NULL,
    first     INTEGER NOT NULL CHECK (first > 0),
    last      INTEGER NOT NULL CHECK (last >= first),
    earliest  INTEGER NOT NULL,
    latest    INTEGER NOT NULL,
    agents    TEXT NOT NULL,
    kinds     TEXT NOT NULL, labels TEXT NOT NULL DEFAULT '*',
    PRIMARY KEY (workspace, last)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_pending ON task (workspace, holder, ready_at, priority DESC, began) WHERE state = 'pending';

CREATE INDEX task_first ON task (workspace, priority DESC, began)
WHERE state = 'pending' AND ready_at = 0 AND worker = '';

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

CREATE TABLE schedule (
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    state     TEXT NOT NULL,
    cron      TEXT NOT NULL,
    zone      TEXT NOT NULL,
    catch_up  TEXT NOT NULL,
    agent     TEXT NOT NULL,
    task      TEXT NOT NULL,
    request   TEXT NOT NULL,
    next      INTEGER,
    last      INTEGER,
    last_task TEXT NOT NULL,
    runs      INTEGER NOT NULL,
    set_by    TEXT NOT NULL,
    set_at    INTEGER NOT NULL,
    began     INTEGER NOT NULL,
    moved     INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_next ON schedule (workspace, next, name) WHERE next IS NOT NULL;

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
    moved      INTEGER NOT NULL, task TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE access (
    workspace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    digest     TEXT NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    agent      TEXT NOT NULL,
    bounds     TEXT NOT NULL,
    expires_at INTEGER,
    made_at    INTEGER NOT NULL,
    made_by    TEXT NOT NULL,
    revoked_at INTEGER,
    revoked_by TEXT NOT NULL,
    used_at    INTEGER,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX access_id ON access (id, workspace);

CREATE TABLE member (
    name TEXT NOT NULL PRIMARY KEY,
    home TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE placed (
    name  TEXT NOT NULL PRIMARY KEY,
    place TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE moving (
    name       TEXT NOT NULL PRIMARY KEY,
    state      TEXT NOT NULL CHECK (state IN ('leaving', 'left', 'arriving')),
    place      TEXT NOT NULL,
    address    TEXT NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID;

ANALYZE;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
('artifact', 'artifact', '100000 100000 2 1'),
('artifact', 'artifact_digest', '100000 100000 2'),
('artifact', 'artifact_run', '100000 100000 20'),
('chapter', 'chapter', '100000 100000 1'),
('entry', 'entry', '1000000 1000000 10000 1'),
('entry', 'entry_expiry', '100000 100000 10'),
('entry', 'entry_recent', '1000000 1000000 10000 1'),
('event', 'event', '100000000 100000000 1'),
('event', 'event_op', '100000000 100000000 1'),
('event', 'event_run', '100000000 100000000 10'),
('gap', 'gap', '100000 100000 1'),
('gap', 'gap_stated', '100000 100000 50 1'),
('hold', 'hold', '10000 10000 1'),
('hold', 'hold_open', '1000 1000 2'),
('hold', 'hold_uncertain', '1000 1000 2'),
('hold', 'hold_until', '1000 1000 1'),
('lease', 'lease', '10000 10000 1 1'),
('message', 'message', '100000 100000 1'),
('message', 'message_sent', '1000 1000 100 10 5'),
('message', 'message_told', '100 100 10 1'),
('message', 'message_waiting', '1000 1000 100 10 1'),
('meter', 'meter', '100000 100000 30000 100 100 1'),
('meter', 'meter_hour', '100000 100000 100'),
('question', 'question', '100000 100000 1'),
('question', 'question_asked', '100000 100000 1'),
('question', 'question_open', '1000 1000 2'),
('question', 'question_run', '100000 100000 4'),
('question', 'question_task', '1000 1000 2'),
('question', 'question_until', '1000 1000 1'),
('run', 'run', '5000000 5000000 1'),
('tally', 'tally', '100000 100000 50000 10 1'),
('tally_task', 'tally_task', '10000 10000 1'),
('tally_task', 'tally_task_run', '5000 5000 1'),
('task', 'task', '10000000 9000000 1'),
('task', 'task_began', '10000000 10000000 1'),
('task', 'task_cancelling', '10 10 5'),
('task', 'task_dedup_key', '10000 10000 1'),
('task', 'task_first', '1000 1000 500 1'),
('task', 'task_gone', '100000 100000 30000 1'),
('task', 'task_later', '100 100 1'),
('task', 'task_origin', '100000 100000 2'),
('task', 'task_parent', '10000000 10000000 5'),
('task', 'task_pending', '1000 1000 100 50 50 1'),
('task', 'task_resuming', '10 10 5'),
('task', 'task_root', '5000000 5000000 1'),
('task', 'task_running', '1000 1000 100 1'),
('task', 'task_session', '5000000 5000000 10'),
('task', 'task_until', '1000 1000 1'),
('task', 'task_waiting', '100 100 10'),
('used_key', 'used_key', '1000000 1000000 1'),
('used_key', 'used_key_run', '1000000 1000000 10 1'),
('used_key', 'used_key_task', '1000000 1000000 1 1');

ANALYZE sqlite_schema;

PRAGMA user_version = 39;
