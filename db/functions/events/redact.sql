-- redact(text) -> the text without secrets, phone numbers and e-mail addresses: each is ***
--
-- The twin of autopost_runtime.secrets.redaction: change both. SQL calls it for text that is typed into psql and, by
-- quoted(), for what a post quotes. The Python twin parses JSON inside JSON instead of masking its rest. Masked text
-- stays as it is.
--
-- A bounded repetition like {0,60} is unrolled, and beside a lookaround each character then costs as much as the whole
-- pattern: names and addresses repeat without a bound. After each match a lookbehind is evaluated from the beginning of
-- the text, so foreign text goes through quoted(), which reads 2,048 characters.
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
    -- Without one of these no pattern can match, and most text has none.
    IF _text IS NULL OR _text !~* $re$[:=@]|%[34]|/bot|bearer|basic|\d[\d\s().\u2010-\u2015-]{8,}\d$re$ THEN
        RETURN _text;
    END IF;
    FOREACH _rule SLICE 1 IN ARRAY ARRAY[
        -- Secrets: in the path of a call, a bot's token, headers, an address with a password, name=value, JSON.
        [$re$/bot(?!\{)[^/\s"'?#]{6,}$re$, '/bot***'],
        [$re$\y\d{6,}(?::|%3A)[A-Za-z0-9_-]{30,}$re$, '***'],
        [$re$\y(bearer|basic)\s+[^\s"',;]+$re$, '\1 ***'],
        [$re$\y(authorization["']?\s*[:=]\s*["']?)(?!(?:bearer|basic)\y)[^\s"',;]+$re$, '\1***'],
        [$re$(?<![\w-])(x-[\w-]*(?:secret|token|key)\s*[:=]\s*)[^\s"',;]+$re$, '\1***'],
        [$re$\y((?:set-)?cookie\s*:\s*)[^\r\n"']+$re$, '\1***'],
        [$re$(://[^\s:/@]*):[^\s/]+@$re$, '\1:***@'],
        [$re$\y(https?://)[^\s/?#"']+@$re$, '\1***@'],
        [$re$(^|[^\w-]|%3F|%26)(?!claim_token=)((?:[\w-]*[_-])?$re$
         || $re$(?:token|password|passwd|secret|api[_-]?key|signature|[Пп][Аа][Рр][Оо][Лл][Ьь]|[Тт][Оо][Кк][Ее][Нн])$re$
         || $re$(?:=|%3D))[^\s&"']+$re$, '\1\2***'],
        -- A password that somebody types: four characters or more with a digit or sign, or it is taken for a word.
        [$re$(^|[^\w-])(?!claim_token)((?:[\w-]*[_-])?$re$
         || $re$(?:token|password|passwd|secret|api[_-]?key|[Пп][Аа][Рр][Оо][Лл][Ьь]|[Тт][Оо][Кк][Ее][Нн])$re$
         || $re$[ \t\u00a0]?[:=][ \t\u00a0]?[ \t\u00a0]?["'«]?)$re$
         || $re$(?:[^\s&"',;:=«»\d_$^*~+]{3}[^\s&"',;:=«»\d_$^*~+]*[\d_$^*~+][^\s&"',;«»]*$re$
         || $re$|[^\s&"',;:=«»\d_$^*~+]{2}[\d_$^*~+][^\s&"',;«»]+$re$
         || $re$|[^\s&"',;:=«»\d_$^*~+][\d_$^*~+][^\s&"',;«»]{2}[^\s&"',;«»]*$re$
         || $re$|[\d_$^~+][^\s&"',;«»]{3}[^\s&"',;«»]*)$re$, '\1\2***'],
        [$re$([?&;](?:sig|sign|hmac|auth|key|pwd|pass|jwt|sid|session|session_?id|ticket|code)=)[^\s&"']+$re$, '\1***'],
        [$re$(["'](?!claim_token)(?:[\w-]*[_-])?(?:token|secret|password|passwd|authorization|cookie|$re$
         || $re$(?:api|access|secret)[_-]?key|[Пп][Аа][Рр][Оо][Лл][Ьь]|[Тт][Оо][Кк][Ее][Нн])\\*["']\s*:\s*\\*["'])(?!\*\*\*)(?:[^"'\\]|\\.)*$re$, '\1***'],
        -- Personal data: an address, an international number, 8 (900) …, 89…, a number without the country.
        [$re$(?<![\w.+%-])(?<!//)[\w.+%-]+(?:@|%40)(?:[\w-]+\.)+[[:alpha:]]{2,}$re$, '***'],
        [$re$(?:\+|%2B)[1-9](?:[\s().\u2010-\u2015-]{0,2}\d){9,14}(?!\d)$re$, '***'],
        [$re$(?<![\w.+-])[78](?:[\s\u2010-\u2015-]?\(\d{3,5}\)[\s\u2010-\u2015-]?|[\s\u2010-\u2015-]\d{3,5}[\s\u2010-\u2015-])$re$
         || $re$\d{1,3}(?:[\s\u2010-\u2015-]?\d{2}){2}(?![\w-])$re$, '***'],
        [$re$(?<![\w.+-])[78]9\d{9}(?![\w-])$re$, '***'],
        [$re$(?<![\w.:+-])\(?\d{3}\)?[\s.\u2010-\u2015-]\d{3}[\s.\u2010-\u2015-]\d{2}[\s.\u2010-\u2015-]?\d{2}(?![\w-])$re$, '***']
    ]
    LOOP
        _text := regexp_replace(_text, _rule[1], _rule[2], 'gi');
    END LOOP;
    RETURN _text;
END $$;
