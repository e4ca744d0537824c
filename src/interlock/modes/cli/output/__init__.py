"""Output of the command line: tables, formats, timelines, and what tasks print."""
