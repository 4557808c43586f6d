"""Text with markup: parsed, checked, split, and written in the dialect of a platform."""
