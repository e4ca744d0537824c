"""Limits of schedules: how much of everything, so that reading one never takes long."""

from __future__ import annotations

from interlock.timing.cron import MAX_LENGTH

#: Schedules of a config, and cron lines of a schedule.
MAX_SCHEDULES = 100
MAX_LINES = 100
#: Cron lines of a config in all its schedules.
MAX_LINES_IN_ALL = 200
#: Characters of all cron lines of an object: a long line takes long to read.
MAX_CRON_CHARACTERS = 10_000
MAX_LINE_LENGTH = MAX_LENGTH
MAX_ZONE_LENGTH = 64
#: Starts and stops, windows, and exceptions of a ControlledJob.
MAX_EVENTS = 100
MAX_WINDOWS = 100
MAX_OVERRIDES = 100
#: Seconds that a zone may be shifted by, either way.
MAX_OFFSET_S = 86_400
#: Calendars that a schedule names, for leaving out and for keeping to.
MAX_CALENDARS = 20

MAX_CONCURRENCY = 1_000_000
MAX_QUEUED = 100_000
#: Due times that are caught up on at one look.
MAX_CATCH_UP = 1_000
#: Ended Jobs that are kept.
MAX_KEPT = 10_000

MAX_OPTIONS = 100
MAX_VALUES = 1_000
#: Characters of an option's name, and of one value.
MAX_OPTION_NAME = 63
MAX_VALUE_LENGTH = 4_096

MAX_DAYS = 2_000
MAX_DAY_LENGTH = 200
MAX_ICALENDAR_BYTES = 512 * 1024
