"""What a user installs, as one package: ``from icebench import engine``.

In a checkout these are the packages `engine` and `bench` beside this one. A wheel has them inside it, as
`icebench.engine` and `icebench.bench`, because those names are too common for site-packages; see `hatch_build.py`.
"""

import bench
import engine

__all__ = ["bench", "engine"]
