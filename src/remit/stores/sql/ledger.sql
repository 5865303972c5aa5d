-- The ledger: leases, holds, and spending by hour.

-- name: lease_add
INSERT INTO lease (workspace, @lease)
VALUES (:workspace, :@lease);

-- name: lease_put
INSERT INTO lease (workspace, @lease)
VALUES (:workspace, :@lease)
ON CONFLICT (workspace, id, unit) DO UPDATE SET @set.lease;

-- name: lease_move
-- The only statement that moves money. The CHECK constraints of the table refuse an invalid move.
UPDATE lease SET granted = granted + :granted, available = available + :available, reserved = reserved + :reserved,
                 lent = lent + :lent, spent = spent + :spent, overrun = overrun + :overrun, users = users + :users
WHERE workspace = :workspace AND id = :id AND unit = :unit;

-- name: lease_set
UPDATE lease SET state = :state WHERE workspace = :workspace AND id = :id AND unit = :unit;

-- name: lease_drop
DELETE FROM lease WHERE workspace = :workspace AND id = :id AND unit = :unit;

-- name: lease
SELECT @lease FROM lease WHERE workspace = :workspace AND id = :id AND unit = :unit;

-- name: lease_page
SELECT @lease
FROM lease WHERE workspace = :workspace AND (id, unit) > (:id, :unit) ORDER BY id, unit LIMIT :limit;

-- name: hold_add
INSERT INTO hold (workspace, @hold)
VALUES (:workspace, :@hold);

-- name: hold_put
INSERT INTO hold (workspace, @hold)
VALUES (:workspace, :@hold)
ON CONFLICT (workspace, id) DO UPDATE SET @set.hold;

-- name: hold_set
UPDATE hold SET state = :state WHERE workspace = :workspace AND id = :id;

-- name: hold_settle
-- Uncertain: charged in full, and listed until the real cost is entered.
UPDATE hold SET state = :state, hour = :hour, credits = :credits, tokens = :tokens, billed = :billed
WHERE workspace = :workspace AND id = :id;

-- name: hold_drop
DELETE FROM hold WHERE workspace = :workspace AND id = :id;

-- name: hold
SELECT @hold FROM hold WHERE workspace = :workspace AND id = :id;

-- name: holds_of
-- The holds of a task's open calls.
SELECT @hold FROM hold WHERE workspace = :workspace AND task = :task AND state <> 'uncertain' ORDER BY id;

-- name: holds_expired
SELECT @hold FROM hold WHERE workspace = :workspace AND state = 'held' AND until <= :now ORDER BY until LIMIT :limit;

-- name: holds_uncertain
SELECT @hold
FROM hold WHERE workspace = :workspace AND state = 'uncertain' AND run > :run ORDER BY run, id LIMIT :limit;

-- name: hold_disputed
-- An unsettled bill of an agent.
SELECT @hold FROM hold WHERE workspace = :workspace AND agent = :agent AND billed <> '' ORDER BY id LIMIT 1;

-- name: holds_of_run
SELECT @hold FROM hold WHERE workspace = :workspace AND state = 'uncertain' AND run = :run ORDER BY id;

-- name: on_hold
-- The amount held at present, by an agent, a session, for a person, or all.
SELECT coalesce(sum(credits), 0), coalesce(sum(tokens), 0) FROM hold
WHERE workspace = :workspace AND state <> 'uncertain'
  AND (:agent = '*' OR agent = :agent) AND (:session = '*' OR session = :session)
  AND (:person = '*' OR person = :person);

-- name: hold_page
SELECT @hold FROM hold WHERE workspace = :workspace AND id > :id ORDER BY id LIMIT :limit;

-- name: meter_count
-- A charge counts for the workspace, its agent and its session.
INSERT INTO meter (workspace, scope, name, unit, hour, spent)
VALUES (:workspace, 'workspace', '', :unit, :hour, :spent), (:workspace, 'agent', :agent, :unit, :hour, :spent),
       (:workspace, 'session', :session, :unit, :hour, :spent)
ON CONFLICT (workspace, scope, name, unit, hour) DO UPDATE SET spent = meter.spent + excluded.spent;

-- name: meter_count_person
-- It counts for the person too who started the run, if one is named.
INSERT INTO meter (workspace, scope, name, unit, hour, spent)
VALUES (:workspace, 'person', :person, :unit, :hour, :spent)
ON CONFLICT (workspace, scope, name, unit, hour) DO UPDATE SET spent = meter.spent + excluded.spent;

-- name: meter_put
INSERT INTO meter (workspace, @meter)
VALUES (:workspace, :@meter)
ON CONFLICT (workspace, scope, name, unit, hour) DO UPDATE SET spent = excluded.spent;

-- name: meter_cut
DELETE FROM meter WHERE workspace = :workspace AND hour < :hour;

-- name: metered
SELECT coalesce(sum(spent), 0) FROM meter
WHERE workspace = :workspace AND scope = :scope AND name = :of AND unit = :unit AND hour >= :since;

-- name: meter_hours
SELECT name, hour, spent FROM meter
WHERE workspace = :workspace AND scope = :scope AND (:of = '*' OR name = :of) AND unit = :unit AND hour >= :since;

-- name: meter_row
SELECT @meter FROM meter
WHERE workspace = :workspace AND scope = :scope AND name = :of AND unit = :unit AND hour = :hour;

-- name: meter_page
SELECT @meter FROM meter
WHERE workspace = :workspace AND (scope, name, unit, hour) > (:scope, :name, :unit, :hour)
ORDER BY scope, name, unit, hour LIMIT :limit;
