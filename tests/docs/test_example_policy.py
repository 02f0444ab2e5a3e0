"""The example of `docs/writing-a-policy.md`, registered as the page says, passes the suite that every policy passes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pages import agrees, blocks

PROJECT = Path(__file__).parent.parent.parent


def test_the_example_is_a_policy_like_any_other(tmp_path: Path) -> None:
    for part in ("src", "tests"):
        shutil.copytree(PROJECT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    plan = tmp_path / "src" / "springtide" / "plan"
    shutil.copy(PROJECT / "docs" / "examples" / "queue_length.py", plan / "policies")
    registry = plan / "registry.py"
    imported = "from springtide.plan.policies.queue_length import QueueLength\n\n_POLICIES: "
    text = registry.read_text().replace("_POLICIES: ", imported, 1)
    registry.write_text(text.replace("    Static,\n", "    Static,\n    QueueLength,\n", 1))

    page = PROJECT / "docs" / "writing-a-policy.md"
    (command,) = (c for block in blocks(page) for c in block.commands() if "test_policy_contract" in c.typed)
    typed = command.typed.replace("python -m", f"{sys.executable} -m")
    done = subprocess.run(
        ["bash", "-c", typed], cwd=tmp_path, env={"PYTHONPATH": "src"}, capture_output=True, text=True, check=False
    )
    assert command.output is not None
    assert agrees(done.stdout, command.output), done.stdout + done.stderr
