"""A journal in memory, which can kill a search when it saves its states."""


class Killed(BaseException):
    """The end of a process, of which only what it saved is left."""


class MemoryStates:
    """Keeps the states of a search in memory (a `StateStore`). Saving is always due."""

    def __init__(self):
        self.saved, self.resumed = {}, {}
        self.n_saved = self.n_loaded = 0
        self.kill_after = None  # this many times that states are saved

    def load(self, name, restore):
        if name not in self.resumed:
            return None
        self.n_loaded += 1
        return restore(self.resumed[name])

    def save(self, name, saved):
        self.saved[name] = saved()
        self.n_saved += 1
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after < 0:
                raise Killed

    def restart(self):
        """Begin another process, which starts from what this one has saved."""
        self.resumed = dict(self.saved)


class MemoryJournal:
    """A `Journal` in memory, of a search and its passes."""

    def __init__(self):
        self.states, self.state, self.finished = MemoryStates(), None, None

    def load(self, params):
        return self.state

    def save(self, state):
        self.state = state

    def end_search(self, finished):
        self.finished = finished
