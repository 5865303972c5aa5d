-- Messages stay within their run.
ALTER TABLE message ADD COLUMN run TEXT NOT NULL DEFAULT '';
UPDATE message SET run = (SELECT e.run FROM event e WHERE e.workspace = message.workspace AND e.seq = message.seq);
DROP INDEX message_waiting;
-- What waits for a reader, in order; announcements wait for a task, whoever holds it.
CREATE INDEX message_waiting ON message (workspace, run, recipient, seq) WHERE taken_at IS NULL AND reader = '';
CREATE INDEX message_told ON message (workspace, reader, seq) WHERE taken_at IS NULL AND reader <> '';
-- How much of one sender waits for one reader.
CREATE INDEX message_sent ON message (workspace, run, recipient, sender) WHERE taken_at IS NULL AND reader = '';
