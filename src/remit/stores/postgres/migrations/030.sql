-- The artifacts that events refer to: one row for each event and digest. The content is needed as long as a row has its
-- digest.
CREATE TABLE artifact (
    workspace  text COLLATE "C" NOT NULL,
    seq        bigint NOT NULL,
    digest     text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    run        text COLLATE "C" NOT NULL,
    task       text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    namespace  text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    size       bigint NOT NULL,
    name       text COLLATE "C" NOT NULL,
    media_type text COLLATE "C" NOT NULL,
    trust      text COLLATE "C" NOT NULL,
    at         bigint NOT NULL,
    PRIMARY KEY (workspace, seq, digest)
);

CREATE INDEX artifact_digest ON artifact (workspace, digest);
CREATE INDEX artifact_run ON artifact (workspace, run);

-- The contents of artifacts, in parts of up to 1 MiB. A content is written in one transaction, so it is whole or not
-- there.
CREATE TABLE content (
    workspace text COLLATE "C" NOT NULL,
    digest    text COLLATE "C" NOT NULL,
    part      bigint NOT NULL,
    data      bytea NOT NULL,
    PRIMARY KEY (workspace, digest, part)
);

ALTER TABLE content ALTER COLUMN data SET STORAGE EXTERNAL;
