"""The memory limit: that of the machine, or of the control groups of a container, versions 1 and 2."""

import pytest

from bitatoms.system import memory

MACHINE = 16 << 30


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Fake the files of Linux: the groups of this process, and the limits by path."""
    monkeypatch.setattr(memory, "_physical_memory", lambda: MACHINE)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_CGROUP_ROOT", tmp_path / "sys")

    def make(groups, limits):
        (tmp_path / "cgroup").write_text(groups)
        for path, text in limits.items():
            (tmp_path / "sys" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "sys" / path).write_text(text)

    return make


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "1073741824\n"}, 1 << 30),
        ("0::/\n", {"memory.max": "max\n"}, MACHINE),
        ("0::/\n", {}, MACHINE),
        ("0::/job/step\n", {"job/memory.max": "2000", "job/step/memory.max": "max"}, 2000),  # of a containing group
        ("0::/job/step\n", {"job/memory.max": "2000", "job/step/memory.max": "1000"}, 1000),
        ("0::/docker/abc\n", {"memory.max": "3000"}, 3000),  # a path outside of the container
        ("5:memory:/job\n3:cpu,cpuacct:/other\n", {"memory/job/memory.limit_in_bytes": "4000\n"}, 4000),
        ("5:memory,hugetlb:/docker/abc\n", {"memory/memory.limit_in_bytes": "5000\n"}, 5000),
        ("5:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, MACHINE),  # no limit
        ("5:cpu:/job\n", {"memory/job/memory.limit_in_bytes": "4000\n"}, MACHINE),
        ("4:memory:/a\n0::/a\n", {"memory/a/memory.limit_in_bytes": "7000", "a/memory.max": "6000"}, 6000),
        ("0::/a:b\n", {"a:b/memory.max": "8000"}, 8000),
        ("garbage\n\n::\n", {"memory.max": "\xb2\n"}, MACHINE),
    ],
)
def test_the_lowest_limit_counts(system, groups, limits, expected):
    system(groups, limits)
    assert memory.memory_limit() == expected


def test_a_machine_without_control_groups(system):
    assert memory.memory_limit() == MACHINE


def test_unknown_memory_is_practically_unlimited(system, monkeypatch):
    monkeypatch.undo()
    monkeypatch.delattr("os.sysconf", raising=False)
    assert memory._physical_memory() == 1 << 46
