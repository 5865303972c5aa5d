-- Long answers of operations: the event has the digest, and lists of events need not read what is long.
CREATE TABLE blob (
    workspace text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    text      text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, seq)
);
