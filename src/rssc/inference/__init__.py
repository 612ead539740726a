"""What the data say beyond one adjustment: choice of models, error bars, windows, combination."""
