"""Networks that learn the force: SPINN, PFWNN and PINN, as methods that `doublewell.compare` takes."""

from doublewell_paper.networks.pfwnn import Pfwnn
from doublewell_paper.networks.pinn import Pinn
from doublewell_paper.networks.spinn import Spinn

__all__ = ["Pfwnn", "Pinn", "Spinn"]
