"""The simulator; with a defect put back where the environment names one, before anything of the engine is loaded."""

from tests.simulation.defects import plant_from_environment

plant_from_environment()
