-- publication_warnings(publication) -> what whoever schedules it should know: [{"code", …}]
--
-- close_to_another   another publication goes to the channel within five minutes
-- same_content       the channel has the approved content already, within its dedup window
CREATE OR REPLACE FUNCTION publication_warnings(p_publication publications)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(jsonb_agg(w.warning), '[]')
    FROM (
        SELECT jsonb_build_object('code', 'close_to_another', 'publication_id', o.publication_id,
                                  'scheduled_at', o.scheduled_at) AS warning
        FROM publications o
        WHERE o.workspace_id = (p_publication).workspace_id
          AND o.channel_id = (p_publication).channel_id
          AND o.publication_id <> (p_publication).publication_id
          AND o.status IN ('scheduled', 'publishing', 'published')
          AND o.version > 0 -- as the index has it
          AND coalesce(o.scheduled_at, 'infinity') BETWEEN (p_publication).scheduled_at - interval '5 minutes'
                                 AND (p_publication).scheduled_at + interval '5 minutes'
        UNION ALL
        SELECT jsonb_build_object('code', 'same_content', 'delivery_id', t.delivery_id, 'sent_at', t.sent_at)
        FROM (
            SELECT d.delivery_id, d.sent_at
            FROM messages m
            JOIN deliveries d
              ON d.workspace_id = m.workspace_id
             AND d.message_id = m.message_id
             AND d.channel_id = (p_publication).channel_id
            JOIN channels c
              ON c.workspace_id = d.workspace_id
             AND c.channel_id = d.channel_id
            WHERE m.workspace_id = (p_publication).workspace_id
              AND m.hash_version = (p_publication).hash_version
              AND m.content_hash = (p_publication).content_hash
              AND is_twin(d.status, coalesce(d.sent_at, d.updated_at), c.dedup_ttl_hours, clock_timestamp())
            LIMIT 1
        ) AS t
    ) AS w
$$;
