-- State of the periodic jobs of services.

-- Which replica of the monitor runs which job, and until when. A lease that is neither renewed nor ended expires.
CREATE TABLE leader_leases (
    job text PRIMARY KEY,
    holder uuid,
    lease_until timestamptz,
    begun_at timestamptz NOT NULL,
    done_at timestamptz,
    CONSTRAINT a_lease_has_a_holder CHECK ((holder IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 50);

-- Workspaces that a loop of a service leaves out for a while because it failed for them: see the function set_aside.
-- The zero id stands for the whole installation.
CREATE TABLE set_aside (
    workspace_id uuid NOT NULL,
    work text NOT NULL,
    failures int NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    error text NOT NULL,
    PRIMARY KEY (workspace_id, work)
);

-- The position of a job that walks a table in more than one call, and whether it has reached the end.
CREATE TABLE walk_cursors (
    walk text PRIMARY KEY,
    after jsonb NOT NULL DEFAULT '{}',
    begun_at timestamptz NOT NULL DEFAULT now(),
    done_at timestamptz
);

-- How far retention has come: rows whose last change was before `until` may have been deleted.
CREATE TABLE retention_marks (
    what text PRIMARY KEY,
    until timestamptz NOT NULL
);
