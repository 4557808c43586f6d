-- is_token_code(code) -> whether a refusal concerns the credential, and so would come from every channel that uses it
CREATE OR REPLACE FUNCTION is_token_code(p_code text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce(p_code IN ('unauthorized', 'credential_missing'), false)
$$;
