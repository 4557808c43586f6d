"""Chats as bots see and change them: members, pins, actions."""
