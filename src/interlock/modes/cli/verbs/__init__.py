"""One module per verb: `arguments(parser)` says what can be typed, `run(session, args)` does it."""
