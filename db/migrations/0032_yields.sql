-- How many deliveries a look at the channel is worth: a claim that knows it looks at as many channels as it needs, and no more.
ALTER TABLE channel_due ADD COLUMN yields int NOT NULL DEFAULT 1;
