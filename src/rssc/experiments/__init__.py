"""The paper's studies: simulation, efficiency and real data."""
