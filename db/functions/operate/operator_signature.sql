-- operator_signature(operator, reason) -> {"operator", "reason"} for the meta of an operator's event
--
-- Secrets pasted into the reason are masked: the log, the stream and the status page show it. An operator may be an
-- e-mail address.
--
-- Raises    AP010 without an operator or a reason
CREATE OR REPLACE FUNCTION operator_signature(p_operator text, p_reason text)
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF coalesce(btrim(p_operator), '') = '' OR coalesce(btrim(p_reason), '') = '' THEN
        RAISE EXCEPTION 'operator and reason must not be empty' USING ERRCODE = 'AP010';
    END IF;
    RETURN jsonb_build_object('operator', btrim(p_operator), 'reason', redact(btrim(p_reason)));
END $$;
