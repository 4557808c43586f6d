-- Two workspaces to try autopost with. Seeding again changes nothing: what is there stays as it is.
--
-- Development secrets, for a laptop and for tests only (the database keeps their sha256):
--   demo    push  demo-push-secret-for-development     bot  demo-bot-secret-for-development
--   shop    push  shop-push-secret-for-development     bot  shop-bot-secret-for-development
--           api   shop-api-secret-for-development
-- and each for its publications: demo-publications-secret-for-development, shop-publications-secret-for-development
-- and, for the status page at /status of the monitor, each for its workspace, the last for all of them:
--   demo-status-token-for-development    shop-status-token-for-development    operator-status-token-for-development
-- The tokens of the bots are not here: credential_bindings names the environment variable that holds each.
-- Rates stay at 0.9 of what the platforms allow (Telegram 1/s per chat and 30/s per bot, MAX 2/s and 30/s).

INSERT INTO workspaces (workspace_id, name) VALUES
    ('0de00000-0000-4000-8000-000000000001', 'demo'),
    ('5f000000-0000-4000-8000-000000000002', 'shop')
ON CONFLICT DO NOTHING;

INSERT INTO workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps, meta) VALUES
    ('0de00000-0000-4000-8000-000000000001', '0de00000-0000-4000-8000-0000000000e1', 'webhook_push',
     encode(sha256('demo-push-secret-for-development'), 'hex'), 1000, '{"name": "demo posts"}'),
    ('0de00000-0000-4000-8000-000000000001', '0de00000-0000-4000-8000-0000000000e2', 'bot_webhook',
     encode(sha256('demo-bot-secret-for-development'), 'hex'), 100, '{"name": "demo bot"}'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000e1', 'webhook_push',
     encode(sha256('shop-push-secret-for-development'), 'hex'), 5, '{"name": "shop posts"}'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000e2', 'bot_webhook',
     encode(sha256('shop-bot-secret-for-development'), 'hex'), 50, '{"name": "shop bot"}'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000e3', 'bot_api',
     encode(sha256('shop-api-secret-for-development'), 'hex'), 50, '{"name": "shop actions"}'),
    ('0de00000-0000-4000-8000-000000000001', '0de00000-0000-4000-8000-0000000000e4', 'publication_api',
     encode(sha256('demo-publications-secret-for-development'), 'hex'), 50,
     '{"name": "demo publications", "scopes": ["draft", "approve", "schedule"]}'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000e4', 'publication_api',
     encode(sha256('shop-publications-secret-for-development'), 'hex'), 50,
     '{"name": "shop publications", "scopes": ["draft", "approve", "schedule"]}')
ON CONFLICT DO NOTHING;

INSERT INTO status_tokens (token_hash, workspace_id, label, created_by, reason, expires_at) VALUES
    (encode(sha256('demo-status-token-for-development'), 'hex'), '0de00000-0000-4000-8000-000000000001',
     'demo (development)', 'seed', 'development', '2100-01-01T00:00:00Z'),
    (encode(sha256('shop-status-token-for-development'), 'hex'), '5f000000-0000-4000-8000-000000000002',
     'shop (development)', 'seed', 'development', '2100-01-01T00:00:00Z'),
    (encode(sha256('operator-status-token-for-development'), 'hex'), NULL,
     'operator (development)', 'seed', 'development', '2100-01-01T00:00:00Z')
ON CONFLICT DO NOTHING;

INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) VALUES
    ('0de00000-0000-4000-8000-000000000001', 'demo-telegram', 'telegram', 'env:AUTOPOST_DEMO_TELEGRAM_TOKEN'),
    ('0de00000-0000-4000-8000-000000000001', 'demo-max', 'max', 'env:AUTOPOST_DEMO_MAX_TOKEN'),
    ('5f000000-0000-4000-8000-000000000002', 'shop-telegram', 'telegram', 'env:AUTOPOST_SHOP_TELEGRAM_TOKEN'),
    ('5f000000-0000-4000-8000-000000000002', 'shop-max', 'max', 'env:AUTOPOST_SHOP_MAX_TOKEN')
ON CONFLICT DO NOTHING;

INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps) VALUES
    ('0de00000-0000-4000-8000-000000000001', 'telegram', 'demo-telegram', 27),
    ('0de00000-0000-4000-8000-000000000001', 'max', 'demo-max', 27),
    ('5f000000-0000-4000-8000-000000000002', 'telegram', 'shop-telegram', 27),
    ('5f000000-0000-4000-8000-000000000002', 'max', 'shop-max', 27)
ON CONFLICT DO NOTHING;

INSERT INTO templates (workspace_id, template_id, version, body, defaults) VALUES
    ('5f000000-0000-4000-8000-000000000002', 'shop-post', 1,
     E'{{ text }}\n\nМагазин «Север» · заказать: https://shop.example/', '{}')
ON CONFLICT DO NOTHING;

-- demo: twenty Telegram and twenty MAX channels; every one takes the demo post.
INSERT INTO channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, title, rate_rps, tags)
SELECT '0de00000-0000-4000-8000-000000000001', md5('demo telegram ' || n)::uuid, 'telegram',
       (-1001000000000 - n)::text, 'demo-telegram', 'demo-telegram', format('Demo Telegram %s', n), 0.9,
       ARRAY['demo', CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END]
FROM generate_series(1, 20) AS n
ON CONFLICT DO NOTHING;

INSERT INTO channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, title, rate_rps, tags)
SELECT '0de00000-0000-4000-8000-000000000001', md5('demo max ' || n)::uuid, 'max',
       (-70000000000000 - n)::text, 'demo-max', 'demo-max', format('Demo MAX %s', n), 1.8,
       ARRAY['demo', CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END]
FROM generate_series(1, 20) AS n
ON CONFLICT DO NOTHING;

-- shop: different tags, filters, rates, windows, modes and a template.
INSERT INTO channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, title, send_mode, rate_rps,
                      max_parallel, timezone, window_mode, posting_window, dedup_ttl_hours, settings, tags,
                      route_filter, template_ref, on_ambiguous)
VALUES
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000c1', 'telegram', '-1002000000001',
     'shop-telegram', 'shop-telegram', 'Север: новости', 'mixed', 0.9, 1, 'Europe/Moscow', 'immediate', NULL, 168,
     '{}', '{news}', NULL, 'shop-post', 'resend'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000c2', 'telegram', '-1002000000002',
     'shop-telegram', 'shop-telegram', 'Север: скидки', 'mixed', 0.3, 1, 'Europe/Moscow', 'immediate', NULL, 24,
     '{"disable_preview": true}', '{sale}', '{"include_any": ["sale", "promo"]}', NULL, 'resend'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000c3', 'telegram', '-1002000000003',
     'shop-telegram', 'shop-telegram', 'Север: только днём', 'mixed', 0.9, 1, 'Europe/Moscow', 'windowed',
     '{"mon": [["09:00", "21:00"]], "tue": [["09:00", "21:00"]], "wed": [["09:00", "21:00"]],
       "thu": [["09:00", "21:00"]], "fri": [["09:00", "13:00"], ["14:00", "21:00"]], "sat": [["11:00", "18:00"]],
       "holidays": ["2027-01-01"]}', 168,
     '{}', '{news}', '{"exclude": ["night"]}', NULL, 'resend'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000c4', 'telegram', '-1002000000004',
     'shop-telegram', 'shop-telegram', 'Север: ночная лента', 'text', 0.9, 1, 'Asia/Vladivostok', 'windowed',
     '{"fri": [["22:00", "02:00"]], "sat": [["22:00", "02:00"]]}', 168,
     '{"silent": true}', '{news,night}', '{"include_all": ["night", "news"]}', NULL, 'resend'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000c5', 'max', '-72000000000001',
     'shop-max', 'shop-max', 'Север в MAX', 'mixed', 1.8, 1, 'Europe/Moscow', 'immediate', NULL, 168,
     '{}', '{news}', NULL, 'shop-post', 'hold'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000c6', 'max', '-72000000000002',
     'shop-max', 'shop-max', 'Север в MAX: скидки', 'mixed', 0.5, 2, 'Europe/Moscow', 'immediate', NULL, 0,
     '{}', '{sale}', '{"include_any": ["sale"], "exclude": ["draft"]}', NULL, 'resend'),
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000c7', 'max', '-72000000000003',
     'shop-max', 'shop-max', 'Север в MAX: фото', 'media', 1.8, 1, 'Europe/Moscow', 'immediate', NULL, 168,
     '{}', '{photo}', NULL, NULL, 'resend')
ON CONFLICT DO NOTHING;

-- A feed to copy; it stays off until it is given an address that answers.
INSERT INTO pull_sources (workspace_id, source_id, kind, config_json, enabled) VALUES
    ('5f000000-0000-4000-8000-000000000002', 'shop-blog', 'rss', '{"url": "https://blog.example/feed.xml"}', false)
ON CONFLICT DO NOTHING;
INSERT INTO workspace_endpoints (workspace_id, endpoint_id, kind, source_id, meta) VALUES
    ('5f000000-0000-4000-8000-000000000002', '5f000000-0000-4000-8000-0000000000e5', 'pull_source', 'shop-blog',
     '{"name": "shop blog"}')
ON CONFLICT DO NOTHING;

-- The shop bot: how it answers, and by which rules. examples/bot/rules.yaml says the same for `autopost bot`.
INSERT INTO bot_settings (workspace_id, auth_ref, rate_group, hours, texts, menu)
SELECT w.workspace_id, w.auth_ref, w.auth_ref, s.hours, s.texts, s.menu
FROM (VALUES ('0de00000-0000-4000-8000-000000000001'::uuid, 'demo-max'),
             ('5f000000-0000-4000-8000-000000000002'::uuid, 'shop-max')) AS w (workspace_id, auth_ref)
CROSS JOIN (VALUES (
    '{"mon": [["09:00", "21:00"]], "tue": [["09:00", "21:00"]], "wed": [["09:00", "21:00"]], "thu": [["09:00",
     "21:00"]], "fri": [["09:00", "21:00"]], "sat": [["09:00", "21:00"]], "sun": [["09:00", "21:00"]]}'::jsonb,
    '{"shop": "Север",
      "greeting": "Здравствуйте! Я бот магазина «{{ shop }}». Помогу с доставкой, оплатой, возвратом и гарантией. Напишите вопрос или выберите тему.",
      "clarify": "Не совсем понял вопрос. Уточните, пожалуйста, или выберите тему.",
      "escalate": "Передаю вопрос оператору. Мы на связи ежедневно с 9:00 до 21:00 по Москве: +7 800 000-00-00, help@shop.example.",
      "escalate_closed": "Сейчас операторы не на связи, ответим {{ opens_at }}. Срочное: help@shop.example.",
      "cancelled": "Хорошо, начнём сначала. Чем помочь?",
      "invalid": "Не нашёл номера заказа. Напишите его цифрами, например 12345, или «отмена».",
      "attachment": "Пока я понимаю только текст. Опишите, пожалуйста, вопрос словами.",
      "flood": "Получили ваши сообщения, ответим чуть позже.",
      "stale_button": "Эта кнопка уже не действует."}'::jsonb,
    '[["Доставка", "Оплата"], ["Возврат", "Гарантия"], ["Контакты"]]'::jsonb
)) AS s (hours, texts, menu)
ON CONFLICT DO NOTHING;

-- A rule with a state answers only in it; "any" takes whatever the customer writes there.
INSERT INTO bot_rules (workspace_id, rule_id, intent, priority, state, pattern, capture, accept, buttons, next_state,
                       response_template)
SELECT w.workspace_id, r.*
FROM (VALUES ('0de00000-0000-4000-8000-000000000001'::uuid), ('5f000000-0000-4000-8000-000000000002'::uuid))
    AS w (workspace_id)
CROSS JOIN (VALUES
    ('delivery', 'delivery', 50, NULL,
     '{"mode": "words", "keywords": ["доставк*", "доставоч*", "достави*", "доставля*", "доставьте", "привез*",
      "привоз*", "курьер", "курьер*", "самовывоз*", "забрать", "пункт* выдачи", "пвз", "посылк*", "сдэк*", "почтой",
      "когда придет", "когда приедет", "отправляете", "отправите"], "stop": ["курьерск*", "вернуть", "верну",
      "возврат*", "отправить назад", "отправить обратно"], "fuzzy": true, "layout": true}'::jsonb,
     NULL, NULL::jsonb, '[]'::jsonb, NULL,
     'Доставляем по всей России: курьером за 1–3 дня, в пункты выдачи за 2–5 дней. От 3 000 ₽ — бесплатно. Номер для отслеживания придёт в сообщении.'),
    ('payment', 'payment', 50, NULL,
     '{"mode": "words", "keywords": ["оплат*", "оплата", "оплач*", "предоплат*", "заплат*", "платить", "платеж*",
      "картой", "карты мир", "карту мир", "наличными", "наличные", "наличка", "нал", "безнал*", "сбп", "рассрочк*",
      "кредит*", "долями", "перевод*", "qr код*", "по qr", "чек", "чека", "чеки", "списали*", "счет для"], "stop":
      ["картой памяти"], "fuzzy": true, "layout": true}',
     NULL, NULL, '[]', NULL,
     'Принимаем карты, СБП и оплату при получении. Чек придёт на почту, указанную в заказе.'),
    ('returns', 'returns', 60, NULL,
     '{"mode": "words", "keywords": ["возврат*", "возвращ*", "вернуть", "верну", "вернете", "вернем", "обмен",
      "обмена", "обмену", "обменять", "поменять", "не подош*", "не подойд*", "не понрав*", "сдать обратно",
      "заберите обратно", "отправить назад", "отправить обратно", "не тот товар", "не тот размер"], "stop":
      ["возвращаться", "возвращаюсь"], "fuzzy": true, "layout": true}',
     NULL, NULL, '[]', 'returns_order',
     'Поможем с возвратом. Напишите, пожалуйста, номер заказа.'),
    ('returns_order', 'returns', 90, 'returns_order',
     '{"mode": "any"}',
     'order_number', '{"kind": "order", "digits": [4, 12]}', '[]', 'returns_reason',
     'Заказ {{ order_number }}. Что случилось с товаром: не подошёл, брак или ошибка в заказе?'),
    ('returns_reason', 'returns', 90, 'returns_reason',
     '{"mode": "any"}',
     'reason', '{"kind": "text"}', '[]', 'default',
     'Приняли: заказ {{ order_number }}, причина «{{ reason }}». Упакуйте товар с чеком и отдайте в любом пункте выдачи в течение 14 дней. Деньги вернём за 3–10 дней.'),
    ('warranty', 'warranty', 50, NULL,
     '{"mode": "words", "keywords": ["гаранти*", "сломал*", "сломан*", "сломат*", "поломал*", "поломк*", "ремонт",
      "ремонта", "ремонту", "отремонтир*", "починить", "почините", "неисправ*", "не включа*", "не работает",
      "не заряжа*", "перестал* работать", "сервисный центр", "сервисного центра", "барахлит", "треснул*"], "stop":
      ["промокод*", "сайт*", "приложени*", "ссылк*"], "fuzzy": true, "layout": true}',
     NULL, NULL, '[]', NULL,
     'Гарантия на все товары — 12 месяцев. Пришлите номер заказа и фото неисправности, и мы оформим ремонт или замену.'),
    ('contacts', 'contacts', 40, NULL,
     '{"mode": "words", "keywords": ["контакт", "контакты", "контактн*", "ваш телефон", "номер телефона",
      "телефон магазина", "телефон горячей", "горячая линия", "горячей линии", "адрес", "адреса", "позвонить",
      "перезвоните", "дозвониться", "связаться", "оператор", "оператора", "оператором", "оператору", "человека",
      "живой человек", "специалистом", "менеджер*", "график работы", "время работы", "часы работы", "вы работаете",
      "вы находитесь", "вы открыты", "открываетесь", "закрываетесь", "сегодня открыты", "где магазин"], "stop":
      ["контракт*"], "fuzzy": true, "layout": true}',
     NULL, NULL, '[]', NULL,
     'Мы на связи ежедневно с 9:00 до 21:00 по Москве: +7 800 000-00-00, help@shop.example. Адрес: Москва, Примерная улица, 1.'),
    ('hello', 'small_talk', 10, NULL,
     '{"mode": "words", "keywords": ["здравствуйте", "привет", "добрый день", "добрый вечер", "доброе утро"]}',
     NULL, NULL, '[["Доставка", "Оплата"], ["Возврат", "Гарантия"], ["Контакты"]]', NULL,
     'Здравствуйте! Чем помочь? Напишите вопрос или выберите тему.'),
    ('thanks', 'small_talk', 10, NULL,
     '{"mode": "words", "keywords": ["спасибо", "благодарю", "спс"]}',
     NULL, NULL, '[]', NULL,
     'Пожалуйста! Если появятся вопросы, пишите.')
) AS r (rule_id, intent, priority, state, pattern, capture, accept, buttons, next_state, response_template)
ON CONFLICT DO NOTHING;
