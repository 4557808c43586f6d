-- write_dead_letter(publication, delivery) -> void: a publication that ended badly goes to the dead letters
--
-- Into the outbox, so in the transaction of the ending. Without text, token and file id. Once per version and attempt.
--
-- delivery     null for a publication that never had one: no plan was possible any more
-- Locks        command_outbox by key
CREATE OR REPLACE FUNCTION write_dead_letter(p_publication publications, p_delivery deliveries)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _attempts int := coalesce(p_delivery.attempt, 0);
    _sent record;
BEGIN
    SELECT min(e.ts) AS first_at, max(e.ts) AS last_at
    INTO _sent
    FROM events e
    WHERE e.workspace_id = p_delivery.workspace_id
      AND e.delivery_id = p_delivery.delivery_id
      AND e.action = 'send_attempt';
    INSERT INTO command_outbox (workspace_id, msg_id, subject, payload, traceparent)
    VALUES (p_publication.workspace_id,
            format('dlq:publish:%s:%s:%s', p_publication.publication_id, p_publication.version, _attempts),
            'delivery.commands.dlq',
            jsonb_build_object(
                'type', 'publish_post_failed.v1', 'workspace_id', p_publication.workspace_id,
                'publication_id', p_publication.publication_id, 'version', p_publication.version,
                'channel_id', p_publication.channel_id, 'delivery_id', p_delivery.delivery_id,
                'error_type', p_publication.last_error -> 'error_type', 'error', shown_error(p_publication.last_error),
                'attempts', _attempts, 'scheduled_at', p_publication.scheduled_at,
                'first_attempt_at', _sent.first_at, 'last_attempt_at', _sent.last_at,
                'trace_id', coalesce(p_delivery.trace_id, p_publication.trace_id)),
            coalesce(p_delivery.traceparent, p_publication.traceparent))
    ON CONFLICT DO NOTHING;
END $$;
