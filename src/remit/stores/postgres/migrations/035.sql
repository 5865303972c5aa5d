-- Row-level security, the second line between workspaces. It is off until the owner calls `secure`; then a role that does
-- not own the tables sees only the rows of the workspaces that its transaction names in `remit.workspaces`.
CREATE FUNCTION secure(served text) RETURNS bigint LANGUAGE plpgsql SET search_path = remit, pg_temp AS $$
DECLARE
    tables bigint := 0;
    named text;
    fits text := 'workspace = ANY (string_to_array(current_setting(''remit.workspaces'', true), chr(10)))';
BEGIN
    -- From the catalogue, so that no table with a workspace is forgotten.
    FOR named IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'remit'::regnamespace AND c.relkind = 'r' AND a.attname = 'workspace'
          AND NOT a.attisdropped
        ORDER BY 1
    LOOP
        tables := tables + 1;
        EXECUTE format('DROP POLICY IF EXISTS workspace ON %I', named);
        EXECUTE format('CREATE POLICY workspace ON %I USING (%s) WITH CHECK (%s)', named, fits, fits);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named);
    END LOOP;
    IF served <> '' THEN
        EXECUTE format('GRANT USAGE ON SCHEMA remit TO %I', served);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA remit TO %I', served);
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA remit TO %I', served);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA remit GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I',
                       served);
    END IF;
    RETURN tables;
END $$;

-- The names of all workspaces, also for a role that sees the rows of one at a time. Jumps from one to the next, as the
-- query of that name does.
CREATE FUNCTION workspaces() RETURNS SETOF text LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = remit, pg_temp AS $$
DECLARE
    named text := '';
    following text;
BEGIN
    SELECT string_agg(format('SELECT min(workspace) AS next FROM %I WHERE workspace > $1', c.relname), ' UNION ALL ')
    INTO following FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'remit'::regnamespace AND c.relkind = 'r' AND a.attname = 'workspace' AND NOT a.attisdropped
      AND c.relname NOT IN ('worker', 'content', 'chapter', 'tally', 'tally_task', 'tally_mark');
    LOOP
        EXECUTE 'SELECT min(next) FROM (' || following || ') AS each' INTO named USING named;
        EXIT WHEN named IS NULL;
        RETURN NEXT named;
    END LOOP;
END $$;

-- The workspace that a caller's key opens, for such a role.
CREATE FUNCTION opened_by(access_id text) RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = remit, pg_temp AS $$
    SELECT a.workspace FROM remit.access a WHERE a.id = access_id LIMIT 2
$$;
