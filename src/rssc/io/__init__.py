"""Files: atomic writes, our JSON and npz, TUM, PLY and other tools' lens files."""
