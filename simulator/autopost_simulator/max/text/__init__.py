"""Text of a message: Markdown and HTML, as MAX reads them."""
