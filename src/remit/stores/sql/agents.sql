-- Agents: circuit breakers and published cards; and paused models and keys.

-- name: breaker_put
INSERT INTO breaker (workspace, @breaker)
VALUES (:workspace, :@breaker)
ON CONFLICT (workspace, name) DO UPDATE SET
    @set.breaker;

-- name: breaker
SELECT state, failures, until, probe, why FROM breaker WHERE workspace = :workspace AND name = :name;

-- name: breaker_set_at
SELECT at FROM breaker WHERE workspace = :workspace AND name = :agent;

-- name: breakers
SELECT @breaker FROM breaker WHERE workspace = :workspace ORDER BY name;

-- name: card_put
INSERT INTO card (workspace, @card)
VALUES (:workspace, :@card)
ON CONFLICT (workspace, name) DO UPDATE SET
    @set.card;

-- name: card_drop
DELETE FROM card WHERE workspace = :workspace AND name = :name;

-- name: card
SELECT data FROM card WHERE workspace = :workspace AND name = :agent;

-- name: cards
SELECT @card FROM card WHERE workspace = :workspace ORDER BY name;

-- name: breaker_page
SELECT @breaker FROM breaker WHERE workspace = :workspace AND name > :name ORDER BY name LIMIT :limit;

-- name: card_page
SELECT @card FROM card WHERE workspace = :workspace AND name > :name ORDER BY name LIMIT :limit;

-- name: cooling_put
INSERT INTO cooling (workspace, @cooling)
VALUES (:workspace, :@cooling)
ON CONFLICT (workspace, name) DO UPDATE SET
    @set.cooling;

-- name: cooling_drop
DELETE FROM cooling WHERE workspace = :workspace AND name = :name;

-- name: cooling_set_at
SELECT at FROM cooling WHERE workspace = :workspace AND name = :cooling;

-- name: coolings
SELECT name, failures, until, kind, used FROM cooling WHERE workspace = :workspace ORDER BY name;

-- name: cooling_page
SELECT @cooling FROM cooling WHERE workspace = :workspace AND name > :name ORDER BY name LIMIT :limit;
