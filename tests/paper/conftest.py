import pytest

from doublewell_paper.records import Sample, Spec, tiny
from doublewell_paper.run import run_study


@pytest.fixture(scope="session")
def weak_study(tmp_path_factory):
    """Every table and figure on small records, without trajectories: the folder and what was made."""
    folder = tmp_path_factory.mktemp("study") / "paper"
    return folder, run_study(folder, tiny=True, trajectory=False, workers=1)


@pytest.fixture(scope="session")
def sample():
    return Sample(tiny(Spec("sixth", "nonconvex", noise=0.02, seed=3, horizon=(61, 100)), 32))
