// A bot made with one Telegram client: says "ready", then answers people until its standard input ends.
// Usage: node telegram_bot.mjs CLIENT poll|hook BASE TOKEN

import { clients } from './telegram_clients.mjs';

const [name, way, base, token] = process.argv.slice(2);
const client = clients[name](base, token);
const keyboard = { inline_keyboard: [[{ text: 'Yes', callback_data: 'yes' }]] };

client.onStart((context) => context.reply('choose', { reply_markup: keyboard }));
client.onText((context, text) => context.reply(`you said ${text}`));
client.onPress(async (context, data) => {
  await context.answerCallbackQuery({ text: 'thanks' });
  await context.editMessageText(`chosen: ${data}`);
});

await client[way]();
console.log('ready');
process.stdin.resume();
process.stdin.on('end', async () => {
  await client.stop();
  setTimeout(() => process.exit(0), 200);
});
