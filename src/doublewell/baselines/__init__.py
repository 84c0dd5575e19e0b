"""Baselines: other methods for the same records, behind one protocol."""

from doublewell.baselines.comparison import Comparison as Comparison
from doublewell.baselines.comparison import Row as Row
from doublewell.baselines.comparison import Trajectory as Trajectory
from doublewell.baselines.comparison import baseline as baseline
from doublewell.baselines.comparison import compare as compare
from doublewell.baselines.comparison import methods as methods
from doublewell.baselines.method import EXACT_DEGREE as EXACT_DEGREE
from doublewell.baselines.method import PAPER_DEGREE as PAPER_DEGREE
from doublewell.baselines.method import Baseline as Baseline
from doublewell.baselines.method import BaselineFit as BaselineFit
from doublewell.baselines.method import admissible as admissible
from doublewell.baselines.method import complete as complete
from doublewell.baselines.method import cores as cores
from doublewell.baselines.method import measured as measured
from doublewell.baselines.method import missing as missing
from doublewell.baselines.method import project as project
from doublewell.baselines.regression import Analytic as Analytic
from doublewell.baselines.regression import DirectFD4 as DirectFD4
from doublewell.baselines.regression import SmoothedFD4 as SmoothedFD4
from doublewell.baselines.regression import Stac as Stac
from doublewell.baselines.regression import Wsindy as Wsindy
from doublewell.baselines.sindy import PySindy as PySindy
