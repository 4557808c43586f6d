// Calls of the official client against a simulator, each result as one JSON line.
// Only `baseUrl` is ours. Usage: node calls.mjs BASE TOKEN CHANNEL FOLDER

import { createRequire } from 'node:module';
import path from 'node:path';

const { Bot, Keyboard } = createRequire(path.join(process.cwd(), 'package.json'))('@maxhub/max-bot-api');

const [base, token, channelText, folder] = process.argv.slice(2);
const channel = Number(channelText);
const bot = new Bot(token, { clientOptions: { baseUrl: `${base}/max/` } });
const stranger = new Bot('nobody', { clientOptions: { baseUrl: `${base}/max/` } });
const file = (name) => path.join(folder, name);
const buttons = Keyboard.inlineKeyboard([[Keyboard.button.callback('Yes', 'yes'), Keyboard.button.link('Site', 'https://example.org')]]);

const shown = (message) => ({
  text: message.body.text ?? null,
  kinds: (message.body.attachments ?? []).map((one) => one.type),
});
const send = async (text, ...attachments) =>
  bot.api.sendMessageToChat(channel, text, { attachments: attachments.map((one) => one.toJson?.() ?? one) });
const person = async (deed, body) => {
  const response = await fetch(`${base}/_sim/max/customers/9/${deed}`, { method: 'POST', body: JSON.stringify(body) });
  return (await response.json()).update;
};

const calls = {
  me: async () => (await bot.api.getMyInfo()).is_bot,
  chat: async () => (await bot.api.getChat(channel)).title,
  rights: async () => (await bot.api.getChatMembership(channel)).is_admin,
  action: async () => bot.api.sendAction(channel, 'typing_on'),
  text: async () => shown(await send('plain')),
  formatted: async () => shown(await bot.api.sendMessageToChat(channel, '**bold**', { format: 'markdown' })),
  picture: async () => shown(await send('caption', await bot.api.uploadImage({ source: file('a.png') }))),
  pictureFromMemory: async () => shown(await send('caption', await bot.api.uploadImage({ source: Buffer.from('png') }))),
  pictureByAddress: async () => shown(await send('', await bot.api.uploadImage({ url: 'https://example.org/a.png' }))),
  album: async () =>
    shown(
      await send(
        'album',
        await bot.api.uploadImage({ source: file('a.png') }),
        await bot.api.uploadImage({ source: file('a.png') }),
        await bot.api.uploadVideo({ source: file('a.mp4') }),
      ),
    ),
  sound: async () => shown(await send('', await bot.api.uploadAudio({ source: file('a.mp3') }))),
  fileWithButtons: async () => shown(await send('read', await bot.api.uploadFile({ source: file('a.txt') }), buttons)),
  editAndDelete: async () => {
    const { mid } = (await send('old', buttons)).body;
    const edited = await bot.api.editMessage(mid, { text: 'new' });
    const after = shown(await bot.api.getMessage(mid));
    const deleted = await bot.api.deleteMessage(mid);
    return [edited.success, after, deleted.success, (await bot.api.deleteMessage(mid)).success];
  },
  answer: async () => {
    await person('start', {});
    const sent = await bot.api.sendMessageToUser(9, 'choose', { attachments: [buttons] });
    await person('press', { message_id: sent.body.mid, button: 'Yes' });
    const { updates } = await bot.api.getUpdates(['message_callback'], { marker: 1 });
    const answered = await bot.api.answerOnCallback(updates[0].callback.callback_id, {
      message: { text: 'done', attachments: [] },
      notification: 'thanks',
    });
    return [updates[0].callback.payload, answered.success, shown(await bot.api.getMessage(sent.body.mid))];
  },
  subscriptions: async () => {
    const set = await bot.api.subscribe('https://bot.example.org/hook', 's3cret', ['message_created']);
    const listed = (await bot.api.getSubscriptions()).map((one) => [one.url, one.updateTypes]);
    return [set.success, listed, (await bot.api.unsubscribe('https://bot.example.org/hook')).success];
  },
  deadToken: async () => stranger.api.getMyInfo(),
  nobody: async () => bot.api.sendMessageToChat(-404, 'x'),
  tooLong: async () => send('a'.repeat(4001)),
  wideRow: async () => send('x', Keyboard.inlineKeyboard([Array(4).fill(Keyboard.button.link('a', 'https://example.org'))])),
  fileAndPicture: async () =>
    send('x', await bot.api.uploadFile({ source: file('a.txt') }), await bot.api.uploadImage({ source: file('a.png') })),
  forbiddenFile: async () => bot.api.uploadImage({ source: file('a.txt') }),
  neverReady: async () => {
    await fetch(`${base}/_sim/faults`, {
      method: 'POST',
      body: JSON.stringify({ effect: { catalogue: 'max.attachment_not_ready' }, method: 'POST /messages', times: 1 }),
    });
    return shown(await send('ready at last', await bot.api.uploadImage({ source: file('a.png') })));
  },
};

for (const [name, call] of Object.entries(calls)) {
  let result;
  try {
    result = await call();
  } catch (error) {
    result = { status: error.status, code: error.code, message: error.description, raised: error.constructor.name };
  }
  console.log(JSON.stringify([name, result]));
}
