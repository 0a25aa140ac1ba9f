"""What counted work and measured times mean: values in, a verdict out, without clocks, files or chance."""
