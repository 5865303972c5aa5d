-- How often the models of a run were asked, and what they asked of agents: how often, how often in a row in vain, and
-- what was answered of late. Rows whose key begins with ! say how often in a row an agent was stopped.
ALTER TABLE run ADD COLUMN requests bigint NOT NULL DEFAULT 0;

INSERT INTO run (workspace, id, members, tasks, handoffs, tokens, refusals, credits, requests)
SELECT workspace, run, '', 0, 0, 0, 0, 0, count(*) FROM event
WHERE kind IN ('model.answered', 'model.failed') GROUP BY workspace, run
ON CONFLICT (workspace, id) DO UPDATE SET requests = excluded.requests;

CREATE TABLE ask (
    workspace text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    times     bigint NOT NULL,
    in_vain   bigint NOT NULL,
    answers   text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, run, key)
);
