"""Input of the command line: files, documents, dates and words as people give them."""
