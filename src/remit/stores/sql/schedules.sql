-- Schedules: tasks that are submitted again and again.

-- name: schedule_put
INSERT INTO schedule (workspace, @schedule)
VALUES (:workspace, :@schedule)
ON CONFLICT (workspace, name) DO UPDATE SET
    @set.schedule;

-- name: schedule_fire
UPDATE schedule SET next = :next, last = :last, last_task = :last_task, runs = :runs, moved = :moved
WHERE workspace = :workspace AND name = :name;

-- name: schedule_drop
DELETE FROM schedule WHERE workspace = :workspace AND name = :name;

-- name: schedule
SELECT @schedule FROM schedule WHERE workspace = :workspace AND name = :schedule;

-- name: schedules
SELECT @schedule FROM schedule WHERE workspace = :workspace ORDER BY name;

-- name: schedules_due
SELECT @schedule FROM schedule
WHERE workspace = :workspace AND next IS NOT NULL AND next <= :now ORDER BY next, name LIMIT :limit;

-- name: next_planned
SELECT next FROM schedule WHERE workspace = :workspace AND next IS NOT NULL ORDER BY next LIMIT 1;

-- name: schedule_page
SELECT @schedule FROM schedule WHERE workspace = :workspace AND name > :name ORDER BY name LIMIT :limit;
