"""Every message of frontend/diag.def must be produced by some test: its format, with the conversions as gaps, must match an expected line.
Usage: check_diags.py ROOT"""
import pathlib
import re
import sys

ROW = re.compile(r'^DIAG\((\w+),\s*(\w+),\s*"((?:[^"\\]|\\.)*)"\)', re.M)
CONVERSION = re.compile(r"%(?:\.\*|[-+ 0#]*\d*(?:\.\d+)?)?(?:hh|h|ll|l|z|j)?[sdiuxXfgcp]")


def main():
    root = pathlib.Path(sys.argv[1])
    rows = ROW.findall((root / "frontend/diag.def").read_text())
    expected = []
    for path in sorted(root.glob("tests/**/*")):
        if path.suffix in (".spec", ".test", ".mlir", ".c", ".py") and path.name != "check_diags.py":
            expected += [line for line in path.read_text(errors="replace").splitlines() if "error: " in line or "note: " in line or "warning: " in line]
    missing = []
    for ident, severity, text in rows:
        text = text.replace('\\"', '"').replace("%%", "%")
        pieces = [re.escape(piece) for piece in CONVERSION.split(text)]
        if not any(pieces):  # nothing of its own: a message passed through
            continue
        pattern = re.compile(severity.lower() + ": " + ".*".join(pieces))
        if not any(pattern.search(line) for line in expected):
            missing.append(f"{ident}: {text}")
    if len({ident for ident, _, _ in rows}) != len(rows):
        missing.append("an id stands twice in diag.def")
    print(f"{len(rows)} messages, {len(missing)} without a test")
    for line in missing:
        print("  " + line)
    return bool(missing)


sys.exit(main())
