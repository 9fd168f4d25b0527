package cli

import "time"

// anyTime is a time in a document. It is written as time.Time is, but of any year: what
// a table says may lie beyond the year 9999, which is no reason to say nothing of it.
type anyTime struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t anyTime) MarshalJSON() ([]byte, error) {
	return t.AppendFormat(nil, `"`+time.RFC3339Nano+`"`), nil
}
