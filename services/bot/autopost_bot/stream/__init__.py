"""The stream of a chat: server-sent events that resume exactly, on any replica."""
