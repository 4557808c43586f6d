// Calls of one Telegram client against a simulator, each result as one JSON line.
// Usage: node telegram_calls.mjs CLIENT BASE TOKEN CHANNEL FOLDER

import path from 'node:path';
import { clients } from './telegram_clients.mjs';

const [name, base, token, channelText, folder] = process.argv.slice(2);
const chat_id = Number(channelText);
const { call, file, refusal } = clients[name](base, token);
const stranger = clients[name](base, '1001:dead');
const at = (name) => file(path.join(folder, name));
const open = { inline_keyboard: [[{ text: 'Open', url: 'https://example.org/a' }]] };

const shown = (message) => ({
  text: message.text ?? message.caption ?? null,
  entities: (message.entities ?? message.caption_entities ?? []).map((one) => one.type),
  kind: ['photo', 'video', 'animation', 'document', 'audio'].find((kind) => message[kind]) ?? null,
  buttons: (message.reply_markup?.inline_keyboard ?? []).flat().map((button) => button.url),
});
const send = async (method, params) => shown(await call(method, { chat_id, ...params }));
const html = { parse_mode: 'HTML' };

const calls = {
  me: async () => (await call('getMe')).is_bot,
  chat: async () => (await call('getChat', { chat_id })).title,
  rights: async () => (await call('getChatMember', { chat_id, user_id: 1001 })).status,
  text: async () => send('sendMessage', { text: '<b>hello</b> 👍🏽 &amp; <code> x</code>', ...html }),
  longText: async () => (await send('sendMessage', { text: 'ж'.repeat(4096) })).text.length,
  quiet: async () =>
    send('sendMessage', {
      text: 'https://example.org',
      disable_notification: true,
      protect_content: true,
      link_preview_options: { is_disabled: true },
    }),
  photo: async () => send('sendPhoto', { photo: at('a.png'), caption: '<i>seen</i>', ...html }),
  photoAgain: async () => {
    const { photo } = await call('sendPhoto', { chat_id, photo: at('a.png') });
    return send('sendPhoto', { photo: photo.at(-1).file_id });
  },
  album: async () => {
    const media = [
      { type: 'photo', media: at('a.png'), caption: '<b>first</b>', ...html },
      { type: 'photo', media: at('b.png') },
      { type: 'video', media: at('a.mp4') },
    ];
    return (await call('sendMediaGroup', { chat_id, media })).map(shown);
  },
  document: async () => send('sendDocument', { document: at('письмо.txt'), caption: 'read', reply_markup: open }),
  video: async () => send('sendVideo', { video: at('a.mp4'), width: 640, height: 360, duration: 9, supports_streaming: true }),
  animation: async () => send('sendAnimation', { animation: at('a.mp4') }),
  audio: async () => send('sendAudio', { audio: at('a.mp3'), performer: 'Choir', title: 'Song', duration: 9 }),
  download: async () => {
    const { document } = await call('sendDocument', { chat_id, document: at('письмо.txt') });
    const { file_path } = await call('getFile', { file_id: document.file_id });
    return [document.file_name, await (await fetch(`${base}/file/bot${token}/${file_path}`)).text()];
  },
  editAndDelete: async () => {
    const { message_id } = await call('sendMessage', { chat_id, text: 'old', reply_markup: open });
    const edited = shown(await call('editMessageText', { chat_id, message_id, text: '<s>new</s>', ...html }));
    return [edited, await call('deleteMessage', { chat_id, message_id })];
  },
  editCaption: async () => {
    const { message_id } = await call('sendPhoto', { chat_id, photo: at('a.png'), caption: 'old' });
    return shown(await call('editMessageCaption', { chat_id, message_id, caption: 'new' }));
  },
  deadToken: async () => stranger.call('getMe'),
  nobody: async () => call('sendMessage', { chat_id: -404, text: 'x' }),
  kicked: async () => call('sendMessage', { chat_id: -50, text: 'x' }),
  migrated: async () => call('sendMessage', { chat_id: -51, text: 'x' }),
  tooFast: async () => call('sendMessage', { chat_id: -1005, text: 'x' }),
  tooLong: async () => call('sendMessage', { chat_id, text: 'x'.repeat(4097) }),
  badMarkup: async () => call('sendMessage', { chat_id, text: '<b>x', ...html }),
  noPhoto: async () => call('sendPhoto', { chat_id, photo: 'nothing' }),
};

for (const [name, ask] of Object.entries(calls)) {
  let result;
  try {
    result = await ask();
  } catch (error) {
    result = refusal(error) || { raised: String(error) };
  }
  console.log(JSON.stringify([name, result]));
}
