-- What a call was said to have cost that was charged less, because that is more than its lease had: the agent's money
-- is frozen until a person has said what is true.
ALTER TABLE hold ADD COLUMN billed text COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX hold_disputed ON hold (workspace, agent) WHERE billed <> '';
