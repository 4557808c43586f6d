"""Text with markup: read as people write it, checked, cut, and written as a platform takes it."""
