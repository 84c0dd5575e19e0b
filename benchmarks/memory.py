"""Growth of peak memory during assembly, kernels compiled before, as a share of the record.

Run: python benchmarks/memory.py
"""

from __future__ import annotations

from common import print_table, save_results, synthetic_record

from doublewell.evidence import weak_evidence
from doublewell.law import Bernstein

SUPPORTS = [(5, 1 / 16), (8, 1 / 8)]


def main() -> None:
    weak_evidence(synthetic_record((25, 64, 64)), Bernstein(5), SUPPORTS)
    record = synthetic_record((101, 512, 512))
    size = record.slab().nbytes
    # The peak so far includes temporaries of making the record; lower it to what is in use now by measuring growth
    # of the resident set instead where the system says it.
    before = resident_bytes()
    with open("/proc/self/clear_refs", "w") as reset:  # noqa: PTH123
        reset.write("5")  # the kernel forgets the old peak
    evidence = weak_evidence(record, Bernstein(5), SUPPORTS)
    growth = peak_resident_bytes() - before
    table = [
        {
            "record": "101 x 512 x 512",
            "record MB": round(size / 1e6, 1),
            "growth MB": round(growth / 1e6, 1),
            "share": round(growth / size, 3),
            "asked": 0.5,
            "rows": evidence.rows,
        }
    ]
    print_table("Growth of peak memory during assembly, degree 5, both supports", table)
    save_results("memory", table)


def _status(field: str) -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123
        line = next(line for line in status if line.startswith(field))
    return int(line.split()[1]) * 1024


def resident_bytes() -> int:
    return _status("VmRSS")


def peak_resident_bytes() -> int:
    return _status("VmHWM")


if __name__ == "__main__":
    main()
