from unit.cli.command_line import latest, run, store_path

__all__ = ["latest", "run", "store_path"]
