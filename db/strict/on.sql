-- Strict mode, for staging and small installations: an event that speaks of a delivery, message or channel that is not
-- there is refused when it is written. Usual is that reconcile_events finds it later, because keys cost every event.
--
-- psql -f db/strict/on.sql; taken back by off.sql. Partitions that are made later have the keys too.
--
-- Refused   while the log has such events: `autopost verify` names them; those of what retention has forgotten leave with
--           their partitions
-- Rests     retain_deliveries and retain_messages: what an event speaks of is kept
-- Locks     events, deliveries, messages and channels against writers while all events are checked
ALTER TABLE events
    ADD CONSTRAINT events_strict_delivery FOREIGN KEY (workspace_id, delivery_id) REFERENCES deliveries,
    ADD CONSTRAINT events_strict_message FOREIGN KEY (workspace_id, message_id) REFERENCES messages,
    ADD CONSTRAINT events_strict_channel FOREIGN KEY (workspace_id, channel_id) REFERENCES channels;
