"""The command line: ``icebench``, or ``python -m icebench``."""

from icebench.bench.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
