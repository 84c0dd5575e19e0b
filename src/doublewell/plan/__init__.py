"""Plan: how well an experiment will determine its law, before it is made.

The likelihood of the movie that a law predicts is linearised at that law. Its information gives the errors of the
estimate for any noise; draws from it go through the estimator that `identify` uses.
"""

from doublewell.plan.experiment import Analysis as Analysis
from doublewell.plan.experiment import Experiment as Experiment
from doublewell.plan.experiment import Prediction as Prediction
from doublewell.plan.experiment import experiment_information as experiment_information
from doublewell.plan.experiment import predict as predict
from doublewell.plan.planning import Goal as Goal
from doublewell.plan.planning import Option as Option
from doublewell.plan.planning import Plan as Plan
from doublewell.plan.planning import plan as plan
