"""Sets of our own with known answers, made by generators from a seed; scenarios as `perdure eval` reads them."""
