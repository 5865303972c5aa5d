-- Chapters of the journal: for about a thousand events in a row, when they happened, whose they are and of which kinds.
-- Whoever looks for a time, an agent or a kind skips the chapters that have none of it. An index on every event would
-- answer too, and cost every event a page; a chapter is written once in a thousand events.
CREATE TABLE chapter (
    workspace text COLLATE "C" NOT NULL,
    first     bigint NOT NULL CHECK (first > 0),
    last      bigint NOT NULL CHECK (last >= first),
    earliest  bigint NOT NULL,
    latest    bigint NOT NULL,
    agents    text COLLATE "C" NOT NULL,
    kinds     text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, last)
);
