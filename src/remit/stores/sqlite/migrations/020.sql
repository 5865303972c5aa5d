-- Money: leases, calls that are held or uncertain, and what was spent by the hour. And questions to people.
ALTER TABLE task ADD COLUMN purse TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN credits INTEGER NOT NULL DEFAULT 0;

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
    own_key   TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hold_open ON hold (workspace, task) WHERE state <> 'uncertain';
CREATE INDEX hold_until ON hold (workspace, until) WHERE state = 'held';
CREATE INDEX hold_uncertain ON hold (workspace, run) WHERE state = 'uncertain';

-- An upsert is checked with the row that it proposes, so a figure that goes down has no CHECK here.
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

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('lease', 'lease', '10000 10000 1 1'),
    ('hold', 'hold', '10000 10000 1'),
    ('hold', 'hold_open', '1000 1000 2'),
    ('hold', 'hold_until', '1000 1000 1'),
    ('hold', 'hold_uncertain', '1000 1000 2'),
    ('meter', 'meter', '100000 100000 30000 100 100 1'),
    ('meter', 'meter_hour', '100000 100000 100'),
    ('question', 'question', '100000 100000 1'),
    ('question', 'question_open', '1000 1000 2'),
    ('question', 'question_task', '1000 1000 2'),
    ('question', 'question_until', '1000 1000 1'),
    ('question', 'question_asked', '100000 100000 1'),
    ('question', 'question_run', '100000 100000 4');
ANALYZE sqlite_schema;
