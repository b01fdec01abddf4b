"""What every write shares: field checks, receipts, blocks, removal."""
