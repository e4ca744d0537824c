"""The same scenarios in both modes: does the embedded server do what a cluster does?

The room owns what a scenario is made of, the two stages on which it is played, and the words in
which a played scenario is told, so that two tellings can be compared line by line. All that may
differ between the modes is in one table, with the reason. It never knows what is right: that is
what all other tests are for.
"""

from support.differential.playing import play, play_schedule
from support.differential.scenario import Scenario
from support.differential.stage import Stage

__all__ = ["Scenario", "Stage", "play", "play_schedule"]
