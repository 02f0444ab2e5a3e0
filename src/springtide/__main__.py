"""`python -m springtide`: the same as the command `springtide`."""

from springtide.cli.main import run

if __name__ == "__main__":
    run()
