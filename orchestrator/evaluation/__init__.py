"""Accuracy of a model over a data set; everything but files and processes.

In: samples with labels (samples, and tables for rows of files), and the outputs of a
firmware and of a reference for them. Out: metrics, confusion matrix and worst samples
(metrics), where a quantized program departs from its float model (layers), and what is
printed (report). Outputs are kept in a file of lines, so that an evaluation can go on
where it ended (records).
"""
