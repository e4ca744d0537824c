"""TestBeds: the slots that their nodes come to, and the record in which they are granted."""
