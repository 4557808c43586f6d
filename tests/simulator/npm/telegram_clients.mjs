// grammY, Telegraf and node-telegram-bot-api behind one set of questions. Only the address is ours.

import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';

const packages = createRequire(path.join(process.cwd(), 'package.json'));

const { Bot: GrammyBot, GrammyError, InputFile: GrammyFile, webhookCallback } = packages('grammy');
const { Telegraf, TelegramError } = packages('telegraf');
const { Bot: NtbaBot, InputFile: NtbaFile, TelegramApiError } = packages('node-telegram-bot-api');
const { createWebhookServer } = packages('node-telegram-bot-api/node');

const SECRET = 's3cret';

function listening(server) {
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}/hook`)));
}

function grammy(base, token) {
  const bot = new GrammyBot(token, { client: { apiRoot: base } });
  let server;
  return {
    call: (method, params) => bot.api.raw[method](params),
    file: (name) => new GrammyFile(name),
    refusal: (error) =>
      error instanceof GrammyError && { status: error.error_code, message: error.description, ...error.parameters },
    onStart: (answer) => bot.command('start', answer),
    onText: (answer) => bot.on('message:text', (context) => answer(context, context.message.text)),
    onPress: (answer) => bot.on('callback_query:data', (context) => answer(context, context.callbackQuery.data)),
    poll: () => new Promise((ready) => void bot.start({ onStart: ready })),
    hook: async () => {
      server = http.createServer(webhookCallback(bot, 'http', { secretToken: SECRET }));
      await bot.api.setWebhook(await listening(server), { secret_token: SECRET });
    },
    stop: () => (server ? server.close() : bot.stop()),
  };
}

function telegraf(base, token) {
  const bot = new Telegraf(token, { telegram: { apiRoot: base } });
  let server;
  return {
    call: (method, params) => bot.telegram.callApi(method, params ?? {}),
    file: (name) => ({ source: name }),
    refusal: (error) =>
      error instanceof TelegramError && { status: error.code, message: error.description, ...error.parameters },
    onStart: (answer) => bot.start(answer),
    onText: (answer) => bot.on('text', (context) => answer(context, context.message.text)),
    onPress: (answer) =>
      bot.on('callback_query', (context) => {
        const answerCallbackQuery = ({ text }) => context.answerCbQuery(text);
        return answer(Object.assign(context, { answerCallbackQuery }), context.callbackQuery.data);
      }),
    poll: () => new Promise((ready) => void bot.launch(ready)),
    hook: async () => {
      bot.botInfo = await bot.telegram.getMe();
      server = http.createServer(bot.webhookCallback('/hook', { secretToken: SECRET }));
      await bot.telegram.setWebhook(await listening(server), { secret_token: SECRET });
    },
    stop: () => (server ? server.close() : bot.stop()),
  };
}

function ntba(base, token) {
  const bot = new NtbaBot(token, { apiRoot: base, maxRetries: 0 });
  let server;
  return {
    call: (method, params) => bot.api[method](params),
    file: (name) => new NtbaFile(readFileSync(name), { filename: path.basename(name) }),
    refusal: (error) =>
      error instanceof TelegramApiError && { status: error.errorCode, message: error.description, ...error.parameters },
    onStart: (answer) => bot.command('start', answer),
    onText: (answer) => bot.on('message', (context) => answer(context, context.message.text)),
    onPress: (answer) =>
      bot.on('callback_query', (context) => {
        const { chat, message_id } = context.callbackQuery.message;
        const editMessageText = (text) => bot.api.editMessageText({ chat_id: chat.id, message_id, text });
        return answer(Object.assign(context, { editMessageText }), context.callbackQuery.data);
      }),
    poll: async () => void bot.startPolling(),
    hook: async () => {
      server = createWebhookServer(bot, { path: '/hook', secretToken: SECRET });
      await bot.api.setWebhook({ url: await listening(server), secret_token: SECRET });
    },
    stop: () => (server ? server.close() : bot.stop()),
  };
}

export const clients = { grammy, telegraf, 'node-telegram-bot-api': ntba };
