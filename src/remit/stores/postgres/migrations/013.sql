-- Idempotency keys, and what each was used for. They outlive the runs that used them: `state` is how the task ended once
-- its record is pruned.
CREATE TABLE used_key (
    workspace text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    task      text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    content   text COLLATE "C" NOT NULL,
    state     text COLLATE "C" NOT NULL,
    ended_at  bigint,
    PRIMARY KEY (workspace, key)
);

CREATE INDEX used_key_run ON used_key (workspace, run);
CREATE INDEX used_key_task ON used_key (workspace, task);
