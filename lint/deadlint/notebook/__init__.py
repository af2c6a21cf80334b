"""Notebooks: their code as one module, and edits of it put back without touching another byte."""
