-- What `autopost migrate` has applied: one row per file under db/, with the checksum of its text.

CREATE TABLE schema_ledger (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON schema_ledger FROM PUBLIC;
