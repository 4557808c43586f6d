-- signed_by(operator, reason) -> {"operator", "reason"}, as it goes into the meta of every event made by hand
--
-- The reason is read by whoever reads the log, the stream or the status page: what is pasted into it by mistake is masked.
-- An operator may be called by an address.
--
-- Raises    AP010 without an operator or a reason: who reads the log later must know whom to ask.
CREATE OR REPLACE FUNCTION signed_by(p_operator text, p_reason text)
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF coalesce(btrim(p_operator), '') = '' OR coalesce(btrim(p_reason), '') = '' THEN
        RAISE EXCEPTION 'an operation by hand needs an operator and a reason' USING ERRCODE = 'AP010';
    END IF;
    RETURN jsonb_build_object('operator', btrim(p_operator), 'reason', redact(btrim(p_reason)));
END $$;
