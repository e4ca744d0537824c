"""Resources at rest: one contract, several backends. It never decides anything about Jobs."""
