"""Files that bots sent: ids, bytes, downloads."""
