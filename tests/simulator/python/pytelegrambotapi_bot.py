"""A bot made with pyTelegramBotAPI: says "ready", then answers people until its standard input ends.

Usage: python pytelegrambotapi_bot.py poll|hook BASE TOKEN
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import telebot
from telebot import apihelper
from telebot.types import CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup, Message, Update

SECRET = "s3cret"

way, base, token = sys.argv[1:]
apihelper.API_URL = f"{base}/bot{{0}}/{{1}}"
bot = telebot.TeleBot(token, threaded=False)


@bot.message_handler(commands=["start"])
def start(message: Message) -> None:
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
    bot.send_message(message.chat.id, "choose", reply_markup=keyboard)


@bot.message_handler(content_types=["text"])
def text(message: Message) -> None:
    bot.send_message(message.chat.id, f"you said {message.text}")


@bot.callback_query_handler(func=lambda query: True)
def press(query: CallbackQuery) -> None:
    bot.answer_callback_query(query.id, "thanks")
    bot.edit_message_text(f"chosen: {query.data}", query.message.chat.id, query.message.message_id)


class Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["X-Telegram-Bot-Api-Secret-Token"] == SECRET:
            bot.process_new_updates([Update.de_json(json.loads(body))])
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if way == "hook":
    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bot.set_webhook(f"http://127.0.0.1:{server.server_port}/hook", secret_token=SECRET)
else:
    threading.Thread(target=bot.infinity_polling, kwargs={"timeout": 10}, daemon=True).start()
sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.read()
os._exit(0)
