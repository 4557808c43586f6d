"""Stand-ins for Telegram and MAX that behave, refuse and fail as the real ones do."""

from autopost_simulator.registration import ChatSpec, StartState, TokenSpec
from autopost_simulator.serve import listening
from autopost_simulator.simulator import Simulator, application

__all__ = ["ChatSpec", "Simulator", "StartState", "TokenSpec", "application", "listening"]
