"""Runs a command and succeeds where it exits with the code given. Usage: exit_code.py CODE COMMAND..."""
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
if code != int(sys.argv[1]):
    sys.exit(f"exit code {code} instead of {sys.argv[1]}: {' '.join(sys.argv[2:])}")
