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
