-- Artifacts: which events refer to which of them.

-- name: artifact_add
INSERT INTO artifact (workspace, @artifact) VALUES (:workspace, :@artifact);

-- name: artifact_cut
DELETE FROM artifact WHERE workspace = :workspace AND seq >= :first AND seq <= :last;

-- name: artifact_rows
SELECT @artifact FROM artifact WHERE workspace = :workspace AND digest = :digest;

-- name: artifacts_at
SELECT @artifact FROM artifact WHERE workspace = :workspace AND seq = :seq;

-- name: artifacts_of_run
SELECT @artifact FROM artifact WHERE workspace = :workspace AND run = :run;

-- name: artifacts
-- All rows, page by page, the newest first.
SELECT @artifact FROM artifact WHERE workspace = :workspace AND seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: artifact_count
SELECT count(*) FROM artifact WHERE workspace = :workspace;

-- name: artifact_bytes
-- Each content once, however many events refer to it.
SELECT coalesce(sum(page.size), 0) FROM (
    SELECT max(size) AS size FROM artifact WHERE workspace = :workspace GROUP BY digest
) AS page;

-- name: artifact_bytes_of_run
-- What the agents of a run have saved.
SELECT coalesce(sum(size), 0) FROM artifact
WHERE workspace = :workspace AND run = :run AND kind = 'artifact.saved';
