-- redact(text) -> the text without secrets, phone numbers and e-mail addresses: each is ***
--
-- The last defence for words that are typed into psql; commands and services do the same before they call
-- (autopost_runtime.redaction, which takes JSON inside JSON apart instead of masking its rest). What is masked already stays as it is.
CREATE OR REPLACE FUNCTION redact(p_text text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _text text := p_text;
    _rule text[];
BEGIN
    FOREACH _rule SLICE 1 IN ARRAY ARRAY[
        -- Secrets: in the path of a call, a bot's token, headers, an address with a password, name=value, JSON.
        [$re$/bot(?!\{)[^/\s"'?#]{6,}$re$, '/bot***'],
        [$re$\y\d{6,}(?::|%3A)[A-Za-z0-9_-]{30,}$re$, '***'],
        [$re$\y(bearer|basic)\s+[^\s"',;]+$re$, '\1 ***'],
        [$re$\y(authorization["']?\s*[:=]\s*["']?)(?!(?:bearer|basic)\y)[^\s"',;]+$re$, '\1***'],
        [$re$(?<![\w-])(x-[\w-]{0,60}(?:secret|token|key)\s*[:=]\s*)[^\s"',;]+$re$, '\1***'],
        [$re$\y((?:set-)?cookie\s*:\s*)[^\r\n"']+$re$, '\1***'],
        [$re$(://[^\s:/@]*):[^\s/]+@$re$, '\1:***@'],
        [$re$(?<![\w-])(?!claim_token=)((?:[\w-]{0,60}[_-])?(?:token|password|passwd|secret|api_?key|signature))$re$
         || $re$=[^\s&"']+$re$, '\1=***'],
        [$re$(["'](?!claim_token)(?:[\w-]{0,60}[_-])?(?:token|secret|password|passwd|authorization|cookie|$re$
         || $re$(?:api|access|secret)[_-]?key)\\*["']\s*:\s*\\*["'])(?!\*\*\*)(?:[^"'\\]|\\.)*$re$, '\1***'],
        -- People: an address, a number as written for abroad, 8 (900) …, 89…, one without the country.
        [$re$(?<![\w.+%-])(?<!//)[\w.+%-]{1,100}@(?:[\w-]{1,63}\.){1,8}[[:alpha:]]{2,}$re$, '***'],
        [$re$\+[1-9](?:[\s().-]{0,2}\d){9,14}(?!\d)$re$, '***'],
        [$re$(?<![\w.:+-])[78](?:[\s-]?\(\d{3,5}\)[\s-]?|[\s-]\d{3,5}[\s-])\d{1,3}(?:[\s-]?\d{2}){2}(?![\w-])$re$, '***'],
        [$re$(?<![\w.:+-])[78]9\d{9}(?![\w-])$re$, '***'],
        [$re$(?<![\w.:+-])\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{2}[\s.-]?\d{2}(?![\w-])$re$, '***']
    ]
    LOOP
        _text := regexp_replace(_text, _rule[1], _rule[2], 'gi');
    END LOOP;
    RETURN _text;
END $$;
