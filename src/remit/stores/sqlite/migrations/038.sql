-- The name of this database among several that share workspaces, and the name of the one that keeps their placement.
CREATE TABLE member (
    name TEXT NOT NULL PRIMARY KEY,
    home TEXT NOT NULL
) WITHOUT ROWID;

-- Where each workspace lives, by the names of databases. Only the home has rows.
CREATE TABLE placed (
    name  TEXT NOT NULL PRIMARY KEY,
    place TEXT NOT NULL
) WITHOUT ROWID;

-- Workspaces that may not be written here, because they are on their way to another database, or from it, or have left.
CREATE TABLE moving (
    name       TEXT NOT NULL PRIMARY KEY,
    state      TEXT NOT NULL CHECK (state IN ('leaving', 'left', 'arriving')),
    place      TEXT NOT NULL,
    address    TEXT NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID;
