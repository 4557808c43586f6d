-- Who may do what. A service executes its functions and nothing else: no table, no view of another's, no DDL.
-- The owner of the schema is a member of each role, so one database URL serves every service (they SET ROLE). In
-- production each service has a login of its own: logins.example.sql.

DO $$
DECLARE
    _role text;
BEGIN
    FOREACH _role IN ARRAY '{autopost_ingest,autopost_dispatcher,autopost_monitor,autopost_bot,autopost_operator,
                             autopost_reader,autopost_payloads}'::text[]
    LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', _role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
        IF NOT pg_has_role(current_user, _role, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', _role);
        END IF;
    END LOOP;
END $$;

-- New functions are everybody's unless this is said.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

GRANT USAGE ON SCHEMA public
    TO autopost_ingest, autopost_dispatcher, autopost_monitor, autopost_bot, autopost_operator, autopost_reader,
       autopost_payloads;

-- Nobody but the owner reads a table, and whoever is granted one by mistake finds no rows in it.
DO $$
DECLARE
    _table regclass;
BEGIN
    FOR _table IN
        SELECT c.oid
        FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace
          AND c.relkind IN ('r', 'p')
          AND c.relname <> 'schema_ledger'
          AND NOT c.relrowsecurity
        ORDER BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', _table);
    END LOOP;
END $$;
