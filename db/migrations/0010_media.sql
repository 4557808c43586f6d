-- What is known about stored media, who is uploading it right now, and the functions whose answers gained a column.

ALTER TABLE media_origin
    ADD COLUMN width int,
    ADD COLUMN height int,
    ADD COLUMN name text;

-- An upload belongs to the claim that makes it and ends with that claim, however that ends.
ALTER TABLE media_blobs
    ADD COLUMN upload_delivery_id uuid,
    ADD COLUMN upload_token uuid,
    ADD CONSTRAINT an_upload_is_a_claim CHECK ((upload_delivery_id IS NULL) = (upload_token IS NULL));

-- Nothing was released with the old forms, so nobody calls them.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS claim_deliveries(uuid, uuid, int, interval, interval, timestamptz);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS read_renderings(uuid, uuid[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS take_slot(uuid, uuid, uuid, interval, timestamptz);
