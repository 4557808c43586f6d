-- Nearly always empty: a claim asks it whether a pause has run out that a catch-up policy follows.
CREATE INDEX channels_to_catch_up ON channels (workspace_id)
WHERE paused_until IS NOT NULL AND catch_up ->> 'policy' <> 'all';

-- Until now such a pause was simply over; what has come since is no pile.
UPDATE channels SET paused_until = NULL WHERE paused_until <= now() AND catch_up ->> 'policy' <> 'all';
