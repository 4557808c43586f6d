"""Chats of MAX as a bot sees and changes them: info, members, pins, and the profile of the bot."""
