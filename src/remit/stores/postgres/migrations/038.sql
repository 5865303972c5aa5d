-- The name of this database among several that share workspaces, and the name of the one that keeps their placement.
CREATE TABLE member (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    home text COLLATE "C" NOT NULL
);

-- Where each workspace lives, by the names of databases. Only the home has rows.
CREATE TABLE placed (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    place text COLLATE "C" NOT NULL
);

-- Workspaces that may not be written here, because they are on their way to another database, or from it, or have left.
CREATE TABLE moving (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
    state      text COLLATE "C" NOT NULL CHECK (state IN ('leaving', 'left', 'arriving')),
    place      text COLLATE "C" NOT NULL,
    address    text COLLATE "C" NOT NULL,
    generation bigint NOT NULL
);
