"""What `make accuracy` prints."""

import sys
from pathlib import Path

from tests.bench.fitting import table
from tests.bench.fitting.data import load


def main() -> None:
    data = load(Path(sys.argv[1]))
    size = sum(map(len, data.texts.texts))
    plain = sum(not step.has_answer for step in data.steps)
    print(f"{len(data.texts.texts):,} texts, {size / 1e6:.1f} M characters; {plain:,} steps")
    for line in table.lines(data):
        print(line)


if __name__ == "__main__":
    main()
