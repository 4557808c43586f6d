"""What operators paste: statements of the runbook as they stand there, with their values as parameters."""

REQUEUE_DEAD = """
with moved as (
  update deliveries d
  set status = 'retry',
      next_retry_at = now(),
      claimed_at = null,
      claim_token = null,
      sending_started_at = null,
      updated_at = now()
  where d.workspace_id = $1
    and d.status = 'dead'
    and d.delivery_id = any($2)
  returning d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.attempt
)
insert into events (id, workspace_id, delivery_id, message_id, channel_id, ts, action, attempt, result, error,
                    payload_ref, meta)
select gen_random_uuid(), m.workspace_id, m.delivery_id, m.message_id, m.channel_id, now(),
       'manual_requeue', m.attempt, 'ok', null, null,
       jsonb_build_object('operator', 'me', 'reason', 'test', 'from_status', 'dead')
from moved m
"""
REQUEUE_FAILED = REQUEUE_DEAD.replace(
    "and d.status = 'dead'",
    "and d.status = 'failed_permanent'\n    and coalesce(d.last_error->>'scope', 'delivery') = 'delivery'",
).replace("'from_status', 'dead'", "'from_status', 'failed_permanent'")
RELEASE_STALE = """
with moved as (
  update deliveries d
  set status = 'retry',
      next_retry_at = now() + interval '15 seconds',
      claimed_at = null,
      claim_token = null,
      sending_started_at = null,
      updated_at = now()
  where d.workspace_id = $1
    and d.status in ('claimed', 'sending')
    and coalesce(d.sending_started_at, d.claimed_at) < now() - interval '10 minutes'
  returning d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.attempt
)
insert into events (id, workspace_id, delivery_id, message_id, channel_id, ts, action, attempt, result, error,
                    payload_ref, meta)
select gen_random_uuid(), m.workspace_id, m.delivery_id, m.message_id, m.channel_id, now(),
       'manual_requeue', m.attempt, 'ok', null, null,
       jsonb_build_object('operator', 'me', 'reason', 'manual_stuck_release')
from moved m
"""
PAUSE = """
update channels c
set paused_until = now() + make_interval(secs => 3600), updated_at = now()
where c.workspace_id = $1 and c.channel_id = any($2)
"""
ENABLE_GROUP = """
update channels c
set enabled = true, paused_until = null, error_streak = 0, updated_at = now()
where c.workspace_id = $1 and c.rate_group = 'bot'
"""
