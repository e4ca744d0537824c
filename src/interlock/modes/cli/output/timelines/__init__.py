"""Windows, runs, skips and exceptions as a picture: worked out once, drawn as text or as SVG."""
