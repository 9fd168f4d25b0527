package table

// ReusePolicy says when a compaction publishes a fragment reuse index by default.
type ReusePolicy int

const (
	// ReuseAlways: with every compaction that the table's indexes allow it for.
	// The zero value: an engine that reads its own tables, and reads them
	// through the index, wants every change of address recorded.
	ReuseAlways ReusePolicy = iota
	// ReuseWhenRead: only if some secondary index answers through it. For tables
	// that other readers share, who pay for each recorded move and gain nothing.
	ReuseWhenRead
)

func (p ReusePolicy) String() string {
	if p == ReuseWhenRead {
		return "when-read"
	}
	return "always"
}

// ReuseAdviser is implemented by an engine for which [ReuseAlways] is the wrong
// default. It is optional.
type ReuseAdviser interface {
	// ReusePolicy is a fact about the engine, the same for all its tables.
	ReusePolicy() ReusePolicy
}

// AdvisedReusePolicy is what the engine advises, ReuseAlways if it does not care.
func AdvisedReusePolicy(e Engine) ReusePolicy {
	if a, ok := As[ReuseAdviser](e); ok {
		return a.ReusePolicy()
	}
	return ReuseAlways
}
