"""Samples for redaction in Python and SQL: texts to mask, their results, and similar texts to keep."""

TOKEN = "1234567:AAabcdefghijklmnopqrstuvwxyz0123456"

PEOPLE = [
    "+79001234567",
    "+7 900 123-45-67",
    "+7 (900) 123-45-67",
    "+44 20 7946 0958",
    "+1 (415) 555-2671",
    "8 (495) 123-45-67",
    "8-900-123-45-67",
    "8 900 123 45 67",
    "8(4232)12-34-56",
    "89001234567",
    "79001234567",
    "(415) 555-2671",
    "ann@example.com",
    "ann.lee+news@mail.example.co.uk",
    "имя@почта.рф",
    "ann%40example.com",
    "+7 900 123\u201345\u201367",  # with dashes, as typesetters write them
    "8\u00a0(900)\u00a0123\u201145\u201167",
    "%2B79001234567",
]
PEOPLE_IN_LINKS = {
    "<a href='tel:89001234567'>": "<a href='tel:***'>",
    "tel:8-900-123-45-67": "tel:***",
    "https://example.com/?mail=ann%40example.com&a=b": "https://example.com/?mail=***&a=b",
}
SECRETS = {
    TOKEN: "***",
    TOKEN.replace(":", "%3A"): "***",
    f"https://api.telegram.org/bot{TOKEN}/sendMessage": "https://api.telegram.org/bot***/sendMessage",
    "Authorization: Bearer abc.def": "Authorization: Bearer ***",
    "authorization: abc": "authorization: ***",
    "X-Max-Bot-Api-Secret: hush": "X-Max-Bot-Api-Secret: ***",
    "X-Api-Key=hush": "X-Api-Key=***",
    "Cookie: a=b; c=d": "Cookie: ***",
    "set-cookie: session=1; Path=/": "set-cookie: ***",
    "postgresql://me:hush@host/db": "postgresql://me:***@host/db",
    "?bot_token=hush&x=1": "?bot_token=***&x=1",
    "X-Amz-Signature=0a1b&X-Amz-Date=1": "X-Amz-Signature=***&X-Amz-Date=1",
    "https://ann:hush@example.com/a": "https://***@example.com/a",
    "see https://ghp_hush@example.com/a?b=1": "see https://***@example.com/a?b=1",
    "HTTP://ann:hu:sh@example.com": "HTTP://***@example.com",
    "https://ann:hu@hush@example.com/a": "https://***@example.com/a",
    "https://hush@hush@example.com/@a": "https://***@example.com/@a",
    "https://ann:hu@sh#hush@example.com": "https://***@example.com",
    "https://example.com/?access_token=hush&b=1": "https://example.com/?access_token=***&b=1",
    "https://example.com/?a=1&api-key=hush": "https://example.com/?a=1&api-key=***",
    "https://example.com/?apikey=hush#top": "https://example.com/?apikey=***",
    "https://example.com/?sig=hush&se=2026": "https://example.com/?sig=***&se=2026",
    "https://example.com/?a=1&key=hush": "https://example.com/?a=1&key=***",
    "https://example.com/?ticket=hush&session_id=hush": "https://example.com/?ticket=***&session_id=***",
    "My password: hush2, keep it": "My password: ***, keep it",
    "Пароль: hush2": "Пароль: ***",
    "ПАРОЛЬ - hush, пароль : «hush_1»": "ПАРОЛЬ - hush, пароль : «***»",
    "пароль=хаш и токен=hush": "пароль=*** и токен=***",
    "the token = hush1 works": "the token = *** works",
    "api_key: hush$hush": "api_key: ***",
    "apikey:hu5h": "apikey:***",
    "DB_PASSWORD: 'hush1:hush' # local": "DB_PASSWORD: '***' # local",
    "secret: h1hush": "secret: ***",
    "passwd: 1234": "passwd: ***",
    "Токен:\u00a0hush-9": "Токен:\u00a0***",
    '{"Пароль": "hush", "токен": "hush"}': '{"Пароль": "***", "токен": "***"}',
    "token=hush in a sentence": "token=*** in a sentence",
    "next=%2F%3Ftoken%3Dhush": "next=%2F%3Ftoken%3D***",
    '{"token": "hu\\"sh", "x": 1}': '{"token": "***", "x": 1}',
    '{"a": "{\\"api_key\\":\\"hush\\"}"}': '{"a": "{\\"api_key\\":\\"***\\"}"}',
    "{'client_secret': 'hush'}": "{'client_secret': '***'}",
    '{"password": "cut he': '{"password": "***"',
}
PROSE = [
    "The secret: patience. The password: never write it down!",
    "Token: a short history of the subway",
    "Secret: why 7 of 10 readers stay",
    "Forgot your password? Password: at least 8 characters, one of them a digit.",
    "The secret to a good soup = time",
    "secret: https://a.example/2026/11",
    "Passwords: 123456 and qwerty lead the list again",
    "Tokens: 4096 at most",
    "Новый пароль: что нужно знать в 2026 году",
    "Пароль: минимум 8 символов, и не день рождения.",
    "Забыли пароль? Токен: как это работает",
    "Секрет успеха: 10 правил. Главный секрет - терпение",
    "Пароли: 123456 и qwerty снова первые",
    "Токены: 1000 штук",
    "Пропуск по паролю: «лето», вход с 19:00",
    "пароль: 5 букв",
]
"""Sentences about secrets that hold none."""
HARMLESS = [
    *PROSE,
    "chat -1001234567890 not found",
    "-77000000000123",
    "2026-11-16T15:00:00.123456+00:00",
    "2026-11-16 15:00:00 +0300",
    "Too Many Requests: retry after 30",
    "0.79001234567",
    "10.20.30.40:8080",
    '"claim_token": "019a8b2c-8912-7abc-8900-123456789012"',
    "claim_token=019a8b2c",
    "@channel",
    "https://example.com/@channel?key_word=1",
    "https://example.com/a?design=1&monkey=2&zip_code=3",
    "idempotency_key=019a8b2c",
    "postgresql://reader@db.example.com:5432/autopost",
    "sha256:8900123456712345678901234567890123456789012345678901234567890123",
]

LOOKED_AT = 2048
"""Characters of a foreign text that is quoted."""
_SHORTER = ("a" * 90 + "@example.com ") * (LOOKED_AT // 103 - 2)
"""Addresses, of which three stars are left each: so the last that is looked at is among the first that is shown."""


def _cut(secret: str) -> str:
    """The secret begins in what is looked at and ends behind it."""
    before = _SHORTER + "b" * (LOOKED_AT - len(_SHORTER) - 1 - len(secret) // 2) + " "
    return before + secret


CUT = [
    "https://ann:" + "hush" * LOOKED_AT + "@example.com/",
    "postgresql://ann:" + "hush?" * LOOKED_AT + "@db/",
    *(
        _cut(secret)
        for secret in (
            "https://ann:hushhushhushhush@example.com/",
            "postgresql://ann:hu:hush#hush@db.example.com/",
            "1234567:hushhushhushhushhushhushhushhush",
            "hushhush.hushhush@hushhush.example.com",
            "/bothushhushhushhushhush/sendMessage",
            '{"password": "hush hush hush hush hush"}',
            "Cookie: a=hush; b=hush; c=hush; d=hush",
        )
    ),
]
"""Each has a secret that ends behind what is looked at."""
