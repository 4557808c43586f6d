-- why_publication_gate(publication, now) -> what a publication waits for; null when it ended or is with its delivery
--
-- {"gate", "since", "until", "released_by", "command", "cause"}, as in why_delivery. Gates:
--
-- not_approved, not_scheduled     a person has not done it yet
-- schedule                        scheduled_at is to come
-- workspace_paused | _disabled    its time has come, and nothing starts in its workspace
-- due                             its time has come: ingest starts it, and makes its delivery
-- missed, unconfirmed, plan_changed, channel_disabled, file_id_expired   paused: a person decides
CREATE OR REPLACE FUNCTION why_publication_gate(p_publication publications, p_now timestamptz)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
               'gate', g.gate, 'since', g.since, 'until', CASE WHEN g.gate = 'schedule' THEN p.scheduled_at END,
               'released_by', CASE g.gate WHEN 'schedule' THEN 'time' WHEN 'due' THEN 'ingest' ELSE 'operator' END,
               'command', CASE
                   WHEN g.gate = 'not_approved' THEN format('autopost publication approve %s', p.publication_id)
                   WHEN g.gate IN ('not_scheduled', 'missed')
                       THEN format('autopost publication schedule %s --at …', p.publication_id)
                   WHEN g.gate = 'unconfirmed'
                       THEN format('autopost publication resolve %s sent|resend --reason ''…''', p.publication_id)
                   WHEN g.gate = 'channel_disabled'
                       THEN format('autopost channel enable %s --reason ''…'', then autopost publication schedule %s --at …',
                                   p.channel_id, p.publication_id)
                   WHEN p.status = 'paused' THEN format('autopost publication edit %s FILE', p.publication_id)
                   WHEN g.gate LIKE 'workspace%'
                       THEN format('autopost workspace resume --workspace %s --reason ''…''', p.workspace_id)
               END,
               'cause', shown_error(p.last_error))
    FROM (SELECT (p_publication).*) AS p
    JOIN workspaces w USING (workspace_id)
    CROSS JOIN LATERAL (
        SELECT CASE
                   WHEN p.status = 'paused' THEN p.pause_code
                   WHEN p.status = 'draft' THEN 'not_approved'
                   WHEN p.status = 'approved' THEN 'not_scheduled'
                   WHEN p.status = 'scheduled' AND p.scheduled_at > p_now THEN 'schedule'
                   WHEN p.status NOT IN ('scheduled', 'publishing') OR p.delivery_id IS NOT NULL THEN NULL
                   WHEN w.status <> 'active' THEN 'workspace_' || w.status
                   ELSE 'due'
               END AS gate,
               CASE WHEN p.status IN ('scheduled', 'publishing') AND p.scheduled_at <= p_now
                    THEN CASE WHEN w.status <> 'active' THEN w.status_since ELSE p.scheduled_at END
                    ELSE p.updated_at END AS since
    ) AS g
    WHERE g.gate IS NOT NULL
$$;
