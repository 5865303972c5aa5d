-- Figures of the journal, rolled up: `data` is what an agent did in the hour or the day that began at `start`, told by
-- events from `first` to `last`. Derived, like all tables, but not with each event: it is brought up to date now and then.
CREATE TABLE tally (
    workspace text COLLATE "C" NOT NULL,
    width     bigint NOT NULL CHECK (width > 0),
    start     bigint NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    first     bigint NOT NULL CHECK (first > 0),
    last      bigint NOT NULL CHECK (last >= first),
    data      text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, width, start, agent)
);

-- What has to be remembered of a task until it ends; `state` is that of a run, and empty for all other tasks.
CREATE TABLE tally_task (
    workspace text COLLATE "C" NOT NULL,
    task      text COLLATE "C" NOT NULL,
    state     text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    data      text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, task)
);

CREATE INDEX tally_task_run ON tally_task (workspace, at) WHERE state <> '';

-- Up to which event all of this counts.
CREATE TABLE tally_mark (
    workspace text COLLATE "C" PRIMARY KEY NOT NULL,
    seq       bigint NOT NULL CHECK (seq > 0)
);
