-- Questions to people.

-- name: question_add
INSERT INTO question (workspace, @question)
VALUES (:workspace, :@question);

-- name: question_answer
-- The first answer counts.
UPDATE question SET state = :state, answered = :answered
WHERE workspace = :workspace AND id = :id AND state = 'open';

-- name: question_use
UPDATE question SET used = :used WHERE workspace = :workspace AND id = :id;

-- name: question_drop
DELETE FROM question WHERE workspace = :workspace AND id = :id;

-- name: question
SELECT @question FROM question WHERE workspace = :workspace AND id = :id;

-- name: questions_of
-- The open questions of a task.
SELECT @question FROM question WHERE workspace = :workspace AND task = :task AND state = 'open';

-- name: questions_open_in
-- The open questions of a run.
SELECT @question FROM question WHERE workspace = :workspace AND run = :run AND state = 'open';

-- name: questions_of_run
SELECT id FROM question WHERE workspace = :workspace AND run = :run ORDER BY id;

-- name: questions_expired
SELECT @question FROM question
WHERE workspace = :workspace AND state = 'open' AND until <= :now ORDER BY until LIMIT :limit;

-- name: questions_open
SELECT @question FROM question
WHERE workspace = :workspace AND state = 'open' AND until > :until ORDER BY until, id LIMIT :limit;

-- name: questions
-- Newest first.
SELECT @question FROM question WHERE workspace = :workspace AND asked < :before ORDER BY asked DESC LIMIT :limit;

-- name: question_page
SELECT @question FROM question WHERE workspace = :workspace AND id > :id ORDER BY id LIMIT :limit;
