-- Hooks: addresses outside that are sent events. Their secrets are derived, and in no table.
CREATE TABLE hook (
    workspace  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    url        text COLLATE "C" NOT NULL,
    kinds      text COLLATE "C" NOT NULL,
    run        text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    rotated_at bigint,
    added_by   text COLLATE "C" NOT NULL,
    added_at   bigint NOT NULL,
    began      bigint NOT NULL,
    moved      bigint NOT NULL,
    PRIMARY KEY (workspace, id)
);
