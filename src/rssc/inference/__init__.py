"""Beyond one adjustment: choice of models by evidence, error bars, windows, combination of estimates."""
