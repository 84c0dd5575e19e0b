"""doublewell: recover free energies from phase-field movies."""
