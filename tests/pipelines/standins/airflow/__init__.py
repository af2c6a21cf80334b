"""Stands for Airflow."""
