-- Long answers of operations: the event has the digest, and lists of events need not read what is long.
CREATE TABLE blob (
    workspace TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    text      TEXT NOT NULL,
    PRIMARY KEY (workspace, seq)
) STRICT;
