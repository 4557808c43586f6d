-- Which replica does which of the monitor's rounds, and what the audit relay must remember: the window it is in, and the
-- stream it wrote to, so that it notices when that is another one or an emptied one.

CREATE TABLE monitor_rounds (
    round text PRIMARY KEY,
    holder uuid,
    lease_until timestamptz,
    begun_at timestamptz NOT NULL,
    done_at timestamptz,
    CONSTRAINT a_lease_has_a_holder CHECK ((holder IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 50);

ALTER TABLE relay_state
    ADD COLUMN seq_top bigint NOT NULL DEFAULT 0,
    ADD COLUMN by_seq boolean NOT NULL DEFAULT false,
    ADD COLUMN seq_passed bigint NOT NULL DEFAULT 0,
    ADD COLUMN sweep_from bigint,
    ADD COLUMN since timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN stream_created timestamptz,
    ADD COLUMN stream_seq bigint NOT NULL DEFAULT 0;

-- Events lie on disk nearly in the order of seq, so this costs next to nothing to keep.
CREATE INDEX events_by_seq ON events USING brin (seq) WITH (pages_per_range = 32, autosummarize = on);
