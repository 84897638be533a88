"""``python -m awa_cron``: the command line, without a script on the path."""

from awa_cron.cli import main

if __name__ == "__main__":
    main()
