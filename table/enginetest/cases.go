package enginetest

import "testing"

// cases are named checks of one engine, each with a table of its own.
type cases []struct {
	name  string
	check func(*testing.T, Config)
}

func (cs cases) run(t *testing.T, cfg Config) {
	for _, c := range cs {
		t.Run(c.name, func(t *testing.T) { c.check(t, cfg) })
	}
}
