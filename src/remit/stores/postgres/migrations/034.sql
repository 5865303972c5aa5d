-- Access: the keys of callers from outside. Only a digest of a key is stored. An id leads to its workspace.
CREATE TABLE access (
    workspace  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    digest     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    scopes     text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    bounds     text COLLATE "C" NOT NULL,
    expires_at bigint,
    made_at    bigint NOT NULL,
    made_by    text COLLATE "C" NOT NULL,
    revoked_at bigint,
    revoked_by text COLLATE "C" NOT NULL,
    used_at    bigint,
    PRIMARY KEY (workspace, id)
);

CREATE INDEX access_id ON access (id, workspace);
