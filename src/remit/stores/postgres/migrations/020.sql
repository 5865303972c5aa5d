-- Money: leases, calls that are held or uncertain, and what was spent by the hour. And questions to people.
ALTER TABLE task ADD COLUMN purse text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN credits bigint NOT NULL DEFAULT 0;

CREATE TABLE lease (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    unit      text COLLATE "C" NOT NULL CHECK (unit = 'credits' OR unit = 'tokens'),
    kind      text COLLATE "C" NOT NULL CHECK (kind = 'account' OR kind = 'carve' OR kind = 'cap'),
    above     text COLLATE "C" NOT NULL,
    granted   bigint NOT NULL CHECK (granted >= 0),
    available bigint NOT NULL CHECK (available >= 0),
    reserved  bigint NOT NULL CHECK (reserved >= 0),
    lent      bigint NOT NULL CHECK (lent >= 0),
    spent     bigint NOT NULL CHECK (spent >= 0),
    overrun   bigint NOT NULL CHECK (overrun >= 0),
    users     bigint NOT NULL CHECK (users >= 0),
    state     text COLLATE "C" NOT NULL CHECK (state = 'open' OR state = 'closing' OR state = 'frozen'),
    PRIMARY KEY (workspace, id, unit),
    -- The second line of defence: whatever the code does, money is neither made nor lost.
    CHECK (available + reserved + lent + spent = granted)
);

CREATE TABLE hold (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    task      text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    fence     bigint NOT NULL,
    state     text COLLATE "C" NOT NULL CHECK (state = 'held' OR state = 'started' OR state = 'uncertain'),
    credits   bigint NOT NULL CHECK (credits >= 0),
    tokens    bigint NOT NULL CHECK (tokens >= 0),
    purse     text COLLATE "C" NOT NULL,
    until     bigint NOT NULL,
    hour      text COLLATE "C" NOT NULL,
    why       text COLLATE "C" NOT NULL,
    model     text COLLATE "C" NOT NULL,
    own_key   text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, id)
);

CREATE INDEX hold_open ON hold (workspace, task) WHERE state <> 'uncertain';
CREATE INDEX hold_until ON hold (workspace, until) WHERE state = 'held';
CREATE INDEX hold_uncertain ON hold (workspace, run) WHERE state = 'uncertain';

-- An upsert is checked with the row that it proposes, so a figure that goes down has no CHECK here.
CREATE TABLE meter (
    workspace text COLLATE "C" NOT NULL,
    scope     text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    unit      text COLLATE "C" NOT NULL,
    hour      text COLLATE "C" NOT NULL,
    spent     bigint NOT NULL,
    PRIMARY KEY (workspace, scope, name, unit, hour)
);

CREATE INDEX meter_hour ON meter (workspace, hour);

CREATE TABLE question (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    task      text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    digest    text COLLATE "C" NOT NULL,
    asked_at  bigint NOT NULL,
    until     bigint NOT NULL,
    state     text COLLATE "C" NOT NULL,
    expires   text COLLATE "C" NOT NULL,
    asked     bigint NOT NULL,
    answered  bigint,
    used      bigint NOT NULL CHECK (used = 0 OR used = 1),
    PRIMARY KEY (workspace, id),
    CHECK ((answered IS NULL) = (state = 'open'))
);

CREATE INDEX question_open ON question (workspace, run) WHERE state = 'open';
CREATE INDEX question_task ON question (workspace, task) WHERE state = 'open';
CREATE INDEX question_until ON question (workspace, until) WHERE state = 'open';
CREATE INDEX question_asked ON question (workspace, asked);
CREATE INDEX question_run ON question (workspace, run);
