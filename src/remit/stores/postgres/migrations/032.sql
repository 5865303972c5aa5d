-- Schedules: tasks that are submitted again and again. An index finds the next one that is due.
CREATE TABLE schedule (
    workspace text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    state     text COLLATE "C" NOT NULL,
    cron      text COLLATE "C" NOT NULL,
    zone      text COLLATE "C" NOT NULL,
    catch_up  text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    task      text COLLATE "C" NOT NULL,
    request   text COLLATE "C" NOT NULL,
    next      bigint,
    last      bigint,
    last_task text COLLATE "C" NOT NULL,
    runs      bigint NOT NULL,
    set_by    text COLLATE "C" NOT NULL,
    set_at    bigint NOT NULL,
    began     bigint NOT NULL,
    moved     bigint NOT NULL,
    PRIMARY KEY (workspace, name)
);

CREATE INDEX schedule_next ON schedule (workspace, next, name) WHERE next IS NOT NULL;
