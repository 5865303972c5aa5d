-- Models and keys that have failed of late, and until when they rest.
CREATE TABLE cooling (
    workspace text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    failures  bigint NOT NULL CHECK (failures > 0),
    until     bigint NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    used      bigint NOT NULL,
    at        bigint NOT NULL,
    PRIMARY KEY (workspace, name)
);
