"""Room for programs: they are dropped where the process holds too many pieces of memory."""

from doublewell.dynamics import room


def test_programs_are_dropped_where_room_runs_out(monkeypatch, tmp_path):
    dropped = []
    monkeypatch.setattr("jax.clear_caches", lambda: dropped.append(1))
    limit, used = tmp_path / "limit", tmp_path / "used"
    monkeypatch.setattr(room, "_LIMIT", limit)
    monkeypatch.setattr(room, "_USED", used)
    assert not room.leave_room()  # a system that does not say
    limit.write_text("10\n")
    used.write_text("piece\n" * 5)
    assert not room.leave_room()
    used.write_text("piece\n" * 6)
    assert room.leave_room()
    assert dropped == [1]
