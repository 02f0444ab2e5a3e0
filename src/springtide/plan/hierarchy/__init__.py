"""EDF's two layers: what each operator asks for by itself, and what is granted to the application as a whole."""
