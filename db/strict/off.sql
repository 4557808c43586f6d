-- Takes strict mode back (on.sql): events have no foreign keys again, and retention goes on.
ALTER TABLE events
    DROP CONSTRAINT IF EXISTS events_strict_delivery,
    DROP CONSTRAINT IF EXISTS events_strict_message,
    DROP CONSTRAINT IF EXISTS events_strict_channel;
