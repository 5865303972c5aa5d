-- Messages: waiting and read.

-- name: message_add
INSERT INTO message (workspace, @message)
VALUES (:workspace, :@message);

-- name: message_take
-- A message is delivered once: this marks it as read for good.
UPDATE message SET taken_at = :taken_at, taken_by = :taken_by
WHERE workspace = :workspace AND id = :id AND taken_at IS NULL;

-- name: message_drop
DELETE FROM message WHERE workspace = :workspace AND id = :id;

-- name: has_message
SELECT count(*) FROM message WHERE workspace = :workspace AND id = :id;

-- name: waiting
-- Messages for an agent in a run, and announcements for its task, each by an index in order. With the bare value,
-- SQLite would compare it with the conditions of both indexes and plan the query again each time.
SELECT id, session, sender, recipient, text, sent_at, reader, about, trust FROM (
    SELECT * FROM (SELECT * FROM message
                   WHERE workspace = :workspace AND run = :run AND recipient = :agent AND taken_at IS NULL AND reader = ''
                   ORDER BY seq LIMIT :limit) AS letters
    UNION ALL
    SELECT * FROM (SELECT * FROM message
                   WHERE workspace = :workspace AND reader = CAST(:task AS text) AND taken_at IS NULL AND reader <> ''
                   ORDER BY seq LIMIT :limit) AS news
) AS mail
ORDER BY seq LIMIT :limit;

-- name: still_waiting
-- The ids of the messages, without their text.
SELECT id FROM message
WHERE workspace = :workspace AND run = :run AND recipient = :agent AND taken_at IS NULL AND reader = ''
ORDER BY seq LIMIT :limit;

-- name: unread
SELECT count(*) FROM message
WHERE workspace = :workspace AND run = :run AND recipient = :agent AND sender = :sender AND taken_at IS NULL
  AND reader = '';

-- name: orphans
-- Orphans: announcements whose task has ended, together with all retries of it.
SELECT m.id, m.session, m.sender, m.recipient, m.text, m.sent_at, m.reader, m.about, m.trust
FROM message m JOIN task t ON t.workspace = m.workspace AND t.id = m.reader
WHERE m.workspace = :workspace AND m.taken_at IS NULL AND m.reader <> '' AND t.ended IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM task a WHERE a.workspace = m.workspace AND a.origin = m.reader AND a.origin <> ''
                  AND a.ended IS NULL)
ORDER BY m.seq LIMIT :limit;

-- name: message_page
SELECT @message
FROM message WHERE workspace = :workspace AND id > :id ORDER BY id LIMIT :limit;
