"""Adequacy: whether the record is the fitted model plus white noise, and what is missing if not.

Alternatives are what the model may lack: terms of the equation, faults of the observation. Each is a direction of the
prediction that costs one linear solve and no fit; the one that explains most of the residual is the likeliest. The
residual itself is tested for correlations of neighbours in space and time, for a force that nobody named, for tails,
and for a few cells that stand out. Holm's correction at 3 % keeps the probability of any false alarm below 5 %; the
verdict weighs what a fault does to the law.
"""

from doublewell.adequacy.check import check_adequacies as check_adequacies
from doublewell.adequacy.check import worst_of_parts as worst_of_parts
from doublewell.adequacy.fluctuating import UNBALANCED as UNBALANCED
from doublewell.adequacy.fluctuating import check_fluctuations as check_fluctuations
from doublewell.adequacy.moments import MomentTests as MomentTests
from doublewell.adequacy.moments import check_moments as check_moments
from doublewell.adequacy.statistics import FALSE_ALARMS as FALSE_ALARMS
from doublewell.adequacy.statistics import NUMERICAL as NUMERICAL
from doublewell.adequacy.statistics import STEADY as STEADY
from doublewell.adequacy.statistics import TOLERANCE as TOLERANCE
from doublewell.adequacy.statistics import Adequacy as Adequacy
from doublewell.adequacy.statistics import ScoreTest as ScoreTest
from doublewell.adequacy.statistics import Spot as Spot
from doublewell.adequacy.statistics import Verdict as Verdict
from doublewell.adequacy.statistics import holm_adjusted as holm_adjusted
