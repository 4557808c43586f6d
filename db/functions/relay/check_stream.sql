-- check_stream(workspace_ids, timestamps, ids, seqs, bodies, since) -> one row per message of the audit stream
--
-- Compares messages that were read from the stream with the events table. Rows come in the order given; place counts
-- from 0.
--
-- known     the table has this event, by workspace, time, id and seq. Also true when retention has deleted the events
--           of that time.
-- differs   the fields in which the event is different. Fields that the relay left out as too large are not compared.
-- before    the seq of the previous event of the same delivery, when it is not older than `since`; events that do not
--           change the delivery have no order
CREATE OR REPLACE FUNCTION check_stream(
    p_workspace_ids uuid[],
    p_timestamps timestamptz[],
    p_ids uuid[],
    p_seqs bigint[],
    p_bodies text[],
    p_since timestamptz DEFAULT '-infinity'
)
RETURNS TABLE (place int, known boolean, differs text[], before bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH kept AS MATERIALIZED (
        SELECT min(p.since) AS since FROM event_partitions() AS p
    ), heard AS MATERIALIZED (
        SELECT g.*, g.body::jsonb AS told
        FROM unnest(p_workspace_ids, p_timestamps, p_ids, p_seqs, p_bodies)
            WITH ORDINALITY AS g (workspace_id, ts, id, seq, body, nth)
    )
    SELECT h.nth::int - 1,
           e.id IS NOT NULL OR h.ts < k.since,
           ARRAY(
               SELECT f.name
               FROM (VALUES
                   ('action', h.told ->> 'action', e.action::text),
                   ('result', h.told ->> 'result', e.result::text),
                   ('attempt', coalesce(h.told ->> 'attempt', '0'), e.attempt::text),
                   ('delivery_id', h.told ->> 'delivery_id', e.delivery_id::text),
                   ('message_id', h.told ->> 'message_id', e.message_id::text),
                   ('channel_id', h.told ->> 'channel_id', e.channel_id::text),
                   ('payload_ref', h.told ->> 'payload_ref', e.payload_ref)
               ) AS f (name, told, kept)
               WHERE e.id IS NOT NULL AND f.told IS DISTINCT FROM f.kept
           ) || ARRAY(
               SELECT f.name
               FROM (VALUES
                   ('error', coalesce(h.told -> 'error', 'null'), coalesce(e.error, 'null')),
                   ('meta', coalesce(nullif(h.told -> 'meta', 'null'), '{}'), e.meta)
               ) AS f (name, told, kept)
               WHERE e.id IS NOT NULL AND f.told <> f.kept AND NOT coalesce(h.told -> 'meta' ? 'omitted', false)
           ),
           b.seq
    FROM heard h
    CROSS JOIN kept k
    LEFT JOIN LATERAL (
        SELECT *
        FROM events e
        WHERE e.workspace_id = h.workspace_id
          AND e.ts = h.ts
          AND e.id = h.id
          AND e.seq = h.seq
        LIMIT 1
    ) AS e ON true
    LEFT JOIN LATERAL (
        SELECT b.seq
        FROM events b
        WHERE b.workspace_id = e.workspace_id
          AND b.delivery_id = e.delivery_id
          AND b.seq < e.seq
          AND b.ts >= p_since
          AND b.ts <= e.ts + interval '1 minute' -- else every partition is read
          AND b.action NOT IN ('stale_commit', 'payload_accessed')
        ORDER BY b.seq DESC
        LIMIT 1
    ) AS b ON e.action NOT IN ('stale_commit', 'payload_accessed')
    ORDER BY h.nth
$$;
