-- A workspace's own keys, sealed by a vault whose master keys are not in here. They are no part of the journal, which
-- is for ever: what is replaced or removed has to be gone.
CREATE TABLE secret (
    workspace text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    key_id    text COLLATE "C" NOT NULL,
    sealed    text COLLATE "C" NOT NULL,
    set_at    bigint NOT NULL,
    PRIMARY KEY (workspace, name)
);
