"""`python -m dre_plugins.cli` is `dre`."""

from dre_plugins.cli import main

if __name__ == "__main__":
    main()
