-- Idempotency keys, and what each was used for. They outlive the runs that used them: `state` is how the task ended once
-- its record is pruned.
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

-- What the planner should expect, as for the other tables.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('used_key', 'used_key', '1000000 1000000 1'),
    ('used_key', 'used_key_run', '1000000 1000000 10 1'),
    ('used_key', 'used_key_task', '1000000 1000000 1 1');
ANALYZE sqlite_schema;
