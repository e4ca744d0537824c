"""Trials by real faults: a real server and real tasks, judged by what the tasks themselves wrote.

The simulation plays every bad moment on simulated time; here nothing is simulated. A server of our
own is loaded by clients, killed, stopped and restored, and asked nonsense. Each task writes down
when it began and ended, under which fencing tokens, and whether its place was really free. The
checker holds that evidence against what the API tells afterwards; it knows nothing of the code
that it judges.
"""
