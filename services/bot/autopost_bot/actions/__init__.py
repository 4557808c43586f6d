"""The API of long-running actions that a bot shows in a chat."""
