"""One module for each page of the reference: `page()` gives its Markdown, made from the tables and docstrings."""
