"""Memory: facts that hold over time, behind one facade."""
