-- Several databases: where a workspace lives, and which ones move. These tables are about workspaces and have nothing of
-- their content, so they are not found through a workspace.

-- name: member_of
-- The name of this database among several, and of their home.
SELECT name, home FROM member;

-- name: place_of
-- The database in which a workspace lives; only the home knows it.
SELECT place FROM placed WHERE name = :workspace;

-- name: moving_all
-- The workspaces that may not be written here.
SELECT name, state, place, address, generation FROM moving;

-- name: moving_of
-- Whether a workspace may not be written here, and why.
SELECT state, place, address, generation FROM moving WHERE name = :workspace;

-- name: member_join
INSERT INTO member (name, home) VALUES (:name, :home)
ON CONFLICT (name) DO UPDATE SET home = excluded.home;

-- name: place_note
-- The first process decides.
INSERT INTO placed (name, place) VALUES (:workspace, :place)
ON CONFLICT DO NOTHING;

-- name: place_change
INSERT INTO placed (name, place) VALUES (:workspace, :place)
ON CONFLICT (name) DO UPDATE SET place = excluded.place;

-- name: moving_put
INSERT INTO moving (name, state, place, address, generation)
VALUES (:workspace, :state, :place, :address, :generation)
ON CONFLICT (name) DO UPDATE SET state = excluded.state, place = excluded.place, address = excluded.address,
                                 generation = excluded.generation;

-- name: moving_drop
DELETE FROM moving WHERE name = :workspace;

-- name: tables_here
SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name;
