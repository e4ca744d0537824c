"""When: makes Jobs exist at their due times, and keeps them inside their windows.

It owns JobConfigs and ControlledJobs: their statuses, the Jobs they make, and the order to stop.
It never lets a Job start: that is the admission room's, which lets a Job of ours in only once
this room has written it down. The clockwork itself is in `timing`.
"""
