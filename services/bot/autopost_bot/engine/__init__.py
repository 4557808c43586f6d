"""The rule engine of the shop bot: an update of a customer and a conversation make a turn.

    load_ruleset(rules, settings) → Ruleset      next_turns(ruleset, conversation, updates) → turns, the last may reply

Nothing here reads a clock, a database or the network; the same input always makes the same turn, byte for byte.
"""
