-- Where events were removed that nothing needs any more: the first and the last number that is missing, the hash of the
-- last, from which the next event continues, and the event that states the gap.
CREATE TABLE gap (
    workspace text COLLATE "C" NOT NULL,
    first     bigint NOT NULL CHECK (first > 0),
    last      bigint NOT NULL CHECK (last >= first),
    hash      text COLLATE "C" NOT NULL,
    stated    bigint NOT NULL CHECK (stated > last),
    PRIMARY KEY (workspace, last)
);

CREATE INDEX gap_stated ON gap (workspace, stated);
