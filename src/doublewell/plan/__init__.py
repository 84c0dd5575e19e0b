"""Plan: what an experiment will tell about its law, before it is made.

The likelihood of the movie that a law predicts is linearised at that law. Its information gives the errors of the
estimate for any noise; draws from it go through the estimator that `identify` uses.
"""

from doublewell.plan.experiment import Experiment
from doublewell.plan.goal import Goal
from doublewell.plan.make import Option, Plan, plan
from doublewell.plan.prediction import Analysis, Prediction, experiment_information, predict

__all__ = [
    "Analysis",
    "Experiment",
    "Goal",
    "Option",
    "Plan",
    "Prediction",
    "experiment_information",
    "plan",
    "predict",
]
