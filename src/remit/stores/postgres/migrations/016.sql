-- What failed, died or was cancelled: people ask for it most, and it is little among all that completed.
CREATE INDEX task_gone ON task (workspace, state, began)
    WHERE state = 'failed' OR state = 'cancelled' OR state = 'dead';
