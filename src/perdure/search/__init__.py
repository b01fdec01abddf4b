"""Ranking: eligibility, candidates, scores, explanations. Nothing else in Perdure ranks."""
