"""Plan: how well an experiment will determine its law, before it is made.

The likelihood of the movie that a law predicts is linearised at that law. Its information gives the errors of the
estimate for any noise; draws from it go through the estimator that `identify` uses.
"""

from doublewell.plan.experiment import Analysis, Experiment, Prediction, experiment_information, predict
from doublewell.plan.planning import Goal, Option, Plan, plan

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
