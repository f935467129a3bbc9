"""What several rooms' tests share: this folder is importable, so `import ggml` finds the reference build's arithmetic."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
