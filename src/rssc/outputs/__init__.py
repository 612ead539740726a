"""What comes out: the report, exported files, rectified footage, comparisons and tables."""
