-- What people and tools of a tenant may read: views of the workspaces of their login, see reader_workspaces.
GRANT EXECUTE ON FUNCTION
    reader_workspaces(),
    why(text, uuid, int, timestamptz),
    why_channel(uuid, uuid[], timestamptz, interval),
    why_delivery(uuid, uuid[], timestamptz, interval, interval)
    TO autopost_reader;

GRANT SELECT ON reader_channels, reader_deliveries, reader_events, reader_messages, reader_quarantine, reader_runs
    TO autopost_reader;
