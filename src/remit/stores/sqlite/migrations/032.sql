-- Schedules: tasks that are submitted again and again. An index finds the next one that is due.
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
