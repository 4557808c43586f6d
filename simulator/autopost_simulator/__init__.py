"""Simulated Telegram and MAX APIs, with their limits, errors and faults."""

from autopost_simulator.registration import ChatSpec, StartState, TokenSpec
from autopost_simulator.serve import listening
from autopost_simulator.simulator import Simulator, application

__all__ = ["ChatSpec", "Simulator", "StartState", "TokenSpec", "application", "listening"]
